"""One setting in three spellings is one spec."""

from __future__ import annotations

from typing import Any

import pytest

import specctl
from specctl.spec import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle3, Mtp, Ngram


def spec_of(source: Any, **options: Any) -> SpecDecodeConfig:
    report = specctl.check(source, **options)
    assert report.valid, [(each.code, each.message) for each in report.diagnostics]
    assert report.config is not None
    return report.config


SGLANG = ["--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "demo-draft"]
SGLANG += ["--speculative-num-steps", "4", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "5"]


def test_draft_model() -> None:
    wanted = SpecDecodeConfig(DraftModel(), 4, model="demo-draft")
    assert spec_of({"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}) == wanted
    assert spec_of('{"method":"draft_model","model":"demo-draft","num_speculative_tokens":4}') == wanted
    assert spec_of(SGLANG) == wanted
    for name, release in (("Draft_Target", "1.4.0rc0"), ("DraftTarget", "1.2.1"), ("DraftTarget", None)):
        text = f"speculative_config:\n  decoding_type: {name}\n  max_draft_len: 4\n  speculative_model: demo-draft\n"
        assert spec_of(text, release=release) == wanted
    own = "specctl: 1\nmethod: draft_model\nmodel: demo-draft\nnum_speculative_tokens: 4\n"
    assert spec_of(own) == wanted


def test_ngram() -> None:
    wanted = SpecDecodeConfig(Ngram(1, 4), 3)
    vllm = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
    keys = "decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 4, is_public_pool: false"
    trtllm = f"speculative_config: {{{keys}}}"
    assert spec_of(vllm) == spec_of(trtllm) == spec_of(trtllm, release="1.4.0rc0") == wanted


def test_sglang_ngram_is_another_search() -> None:
    report = specctl.check(["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "5"])
    assert report.config is not None
    assert (report.config.method.name, report.config.num_speculative_tokens) == ("ngram", 4)
    assert any("another search" in each.message and each.severity == "warning" for each in report.diagnostics)


def test_eagle3_and_mtp() -> None:
    head = SpecDecodeConfig(Eagle3(), 3, model="org/head")
    assert spec_of({"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}) == head
    assert (
        spec_of(
            "speculative_config: {decoding_type: Eagle3, max_draft_len: 3, speculative_model: org/head}",
            release="1.4.0rc0",
        )
        == head
    )
    mtp = SpecDecodeConfig(Mtp(), 2)
    assert spec_of({"method": "mtp", "num_speculative_tokens": 2}) == mtp
    assert spec_of("speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 2}") == mtp


def test_the_help_names_the_release_that_takes_it() -> None:
    report = specctl.check(
        "speculative_config: {decoding_type: Draft_Target, max_draft_len: 4, speculative_model: demo-draft}"
    )
    assert report.release == "1.2.1"
    assert report.verdict == "refuses"
    assert "--release 1.4.0rc0" in (report.diagnostics[0].help or "")


@pytest.mark.parametrize(
    ("count", "verdict", "code"),
    [
        (0, "refuses", "SPC104"),
        (-1, "refuses", "SPC104"),
        (3.5, "refuses", "SPC006"),
        (None, "refuses", "SPC006"),
        ("3", "accepts", "SPC010"),
        (3.0, "accepts", "SPC010"),
        (True, "accepts", "SPC010"),
        (1000000000, "fails-at-start", "SPC108"),
    ],
)
def test_counts_as_vllm_sees_them(count: object, verdict: str, code: str) -> None:
    report = specctl.check(
        {"method": "ngram", "num_speculative_tokens": count, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
    )
    assert report.verdict == verdict
    assert [each.code for each in report.diagnostics] == [code]
    found = report.diagnostics[0]
    assert found.route == ("num_speculative_tokens",)
    assert found.span is not None


def test_the_schedules_of_both_release_lines_mean_the_same() -> None:
    keys = "decoding_type: NGram, max_draft_len: 4, max_matching_ngram_size: 2"
    old = f"speculative_config: {{{keys}, draft_len_schedule: {{1: 4, 4: 2, 8: 0}}}}"
    new = f"speculative_config: {{{keys}, draft_len_schedule: {{3: 4, 7: 2}}}}"
    assert spec_of(old).schedule == spec_of(new, release="1.4.0rc0").schedule
    converted = specctl.convert(old, "trtllm", to_release="1.4.0rc0")
    assert converted.output["speculative_config"]["draft_len_schedule"] == {3: 4, 7: 2}


def test_mixed_spellings_are_a_diagnostic_of_check() -> None:
    report = specctl.check("speculative_config: {decoding_type: NGram}\nspeculative-algorithm: NGRAM\n")
    assert [each.code for each in report.diagnostics] == ["SPC014"]


def test_a_file_with_a_method_of_its_own_is_no_setting() -> None:
    assert [
        each.code for each in specctl.check({"method": "POST", "url": "x", "speculative": 1}, form="json").diagnostics
    ] == ["SPC013"]


def test_flow_style_is_yaml_where_only_yaml_is_meant() -> None:
    assert specctl.check("{specctl: 1, method: ngram, num_speculative_tokens: 4}", engine="specctl").valid
