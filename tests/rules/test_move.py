"""Moving a setting: across releases of TensorRT-LLM inside its own file, and into words that the other engine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specctl import check, convert

FILE = """\
# production
max_batch_size: 64          # ticket 12
speculative_config:
  # the draft
  decoding_type: Eagle      # EAGLE-3
  max_draft_len: 4
  speculative_model_dir: org/head
  draft_len_schedule:  # lower bounds
    1: 4
    4: 2
    8: 0
  eagle3_one_model: false   # old
# the end
enable_chunked_prefill: true
"""
MOVED = """\
# production
max_batch_size: 64          # ticket 12
speculative_config:
  # the draft
  decoding_type: Eagle3      # EAGLE-3
  max_draft_len: 4
  speculative_model_dir: org/head
  draft_len_schedule: {3: 4, 7: 2}
# the end
enable_chunked_prefill: true
"""


def test_only_what_must_change_changes_in_the_file() -> None:
    moved = convert(FILE, "trtllm", to_release="1.4.0rc0", engine="trtllm", form="yaml")
    assert moved.text == MOVED
    assert moved.output["max_batch_size"] == 64
    assert [(each.code, each.severity) for each in moved.report.diagnostics if each.code == "SPC403"] == [
        ("SPC403", "warning")
    ]
    assert (moved.report.engine, moved.report.release, moved.report.verdict) == ("trtllm", "1.4.0rc0", "accepts")
    back = convert(MOVED, "trtllm", to_release="1.2.1", engine="trtllm", release="1.4.0rc0", form="yaml")
    assert back.text == MOVED.replace("Eagle3", "Eagle").replace("{3: 4, 7: 2}", "{1: 4, 4: 2, 8: 0}")
    assert convert(FILE, "trtllm", engine="trtllm", form="yaml").text == FILE


@pytest.mark.parametrize(
    ("old", "old_release", "new", "new_release"),
    [
        ("MTP # m\n  num_nextn_predict_layers: 3 # n", "1.2.1", "MTP # m\n  max_draft_len: 3 # n", "1.4.0rc0"),
        ("MTP # m\n  max_draft_len: 3 # n", "1.4.0rc0", "MTP # m\n  num_nextn_predict_layers: 3 # n", "1.2.1"),
        (
            "NGram\n  max_draft_len: 3\n  max_matching_ngram_size: 2\n  is_public_pool: true",
            "1.2.1",
            "NGram\n  max_draft_len: 3\n  max_matching_ngram_size: 2\n  is_public_pool: true",
            "1.4.0rc0",
        ),
        (
            "NGram\n  max_draft_len: 3\n  is_public_pool: true",
            "1.4.0rc0",
            "NGram\n  max_draft_len: 3\n  is_public_pool: true\n  max_matching_ngram_size: 2",
            "1.2.1",
        ),
        (
            "DraftTarget\n  max_draft_len: 3\n  speculative_model: d",
            "1.2.1",
            "Draft_Target\n  max_draft_len: 3\n  speculative_model: d",
            "1.4.0rc0",
        ),
    ],
)
def test_names_and_defaults_of_the_two_lines(old: str, old_release: str, new: str, new_release: str) -> None:
    text = f"speculative_config:\n  decoding_type: {old}\n"
    moved = convert(text, "trtllm", to_release=new_release, engine="trtllm", release=old_release)
    assert moved.text == f"speculative_config:\n  decoding_type: {new}\n"
    assert check(moved.text, engine="trtllm", release=new_release).verdict == "accepts"


def test_a_file_without_lines_of_its_own_keeps_its_keys() -> None:
    text = '{"max_batch_size": 8, "speculative_config": {"decoding_type": "Draft_Target", "max_draft_len": 3}}'
    moved = convert(text.replace("3}", '3, "speculative_model": "d"}'), "trtllm", release="1.4.0rc0", engine="trtllm")
    assert moved.output["max_batch_size"] == 8
    assert moved.output["speculative_config"]["decoding_type"] == "DraftTarget"


def test_a_gate_is_named_with_its_value_in_the_other_unit() -> None:
    text = "speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: d, acceptance_window: 100, "
    report = convert(text + "acceptance_length_threshold: 0.8}", "trtllm", to_release="1.4.0rc0").report
    helps = [each.help or "" for each in report.diagnostics if each.code == "SPC403"]
    assert any("about 0.2 as acceptance_rate_threshold" in each for each in helps)


@pytest.mark.parametrize(
    ("entries", "old", "new"),
    [
        ([[1, 4, 4], [5, 8, 2], [9, 512, 0]], {1: 4, 5: 2, 9: 0}, {4: 4, 8: 2, 512: 0}),
        ([[1, 4, 4], [9, 16, 2]], {1: 4, 9: 2}, {8: 4, 16: 2}),  # vLLM carries 4 over the gap
        ([[9, 16, 1], [1, 8, 9]], {1: 4, 9: 1}, {8: 4, 16: 1}),  # in order, and no more than k
    ],
)
def test_schedules_keep_their_meaning(entries: list[list[int]], old: dict[int, int], new: dict[int, int]) -> None:
    setting = {"method": "draft_model", "model": "d", "num_speculative_tokens": 4}
    setting |= {"num_speculative_tokens_per_batch_size": entries}  # type: ignore[dict-item]
    for release, wanted in (("1.2.1", old), ("1.4.0rc0", new)):
        converted = convert(setting, "trtllm", to_release=release)
        assert converted.output["speculative_config"]["draft_len_schedule"] == wanted
        ends = entries[-1][2] and release == "1.4.0rc0"
        said = any("above batch size 16" in each.message for each in converted.report.diagnostics)
        assert said is bool(ends)


def test_a_schedule_that_never_drafts_the_most() -> None:
    setting: dict[str, Any] = {"method": "draft_model", "model": "d", "num_speculative_tokens": 4}
    setting["num_speculative_tokens_per_batch_size"] = [[1, 4, 3], [5, 8, 0]]
    written = convert(setting, "trtllm").output["speculative_config"]
    assert (written["max_draft_len"], written["draft_len_schedule"]) == (3, {1: 3, 5: 0})


@pytest.mark.parametrize("setting", [{"method": "suffix"}, {"method": "eagle", "model": "h"}])
def test_nothing_is_written_without_a_counterpart(setting: dict[str, Any]) -> None:
    converted = convert(setting | {"num_speculative_tokens": 3}, "trtllm")
    assert (converted.output, converted.text) == (None, "")
    assert (converted.report.engine, converted.report.verdict) == ("trtllm", "refuses")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("ngram", "5 1 5"), ("dflash", "1 1 5"), ("dspark", "1 1 5"), ("draft_model", "4 1 5"), ("eagle3", "4 1 5")],
)
def test_the_three_numbers_are_always_written(name: str, numbers: str) -> None:
    setting = {"method": name, "num_speculative_tokens": 4} | ({} if name == "ngram" else {"model": "org/d"})
    words = convert(setting, "sglang", engine="vllm").output
    flags = ("--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens")
    assert " ".join(words[words.index(each) + 1] for each in flags) == numbers
    report = check(words, engine="sglang")
    assert not [each for each in report.diagnostics if each.severity == "warning" and each.code != "SPC502"]


@pytest.mark.parametrize(
    ("vllm", "sglang"),
    [
        ({"attention_backend": "FLASH_ATTN"}, "--speculative-draft-attention-backend fa3"),
        ({"attention_backend": "FLASHINFER"}, "--speculative-draft-attention-backend flashinfer"),
        ({"kv_cache_dtype": "fp8"}, "--speculative-draft-kv-cache-dtype fp8_e4m3"),
    ],
)
def test_words_of_the_draft_are_translated(vllm: dict[str, Any], sglang: str) -> None:
    setting = {"method": "eagle3", "model": "org/h", "num_speculative_tokens": 3}
    there = convert(setting | vllm, "sglang")
    assert sglang in there.text
    assert "SPC402" not in [each.code for each in there.report.diagnostics]
    assert check(there.output, engine="sglang").verdict == "accepts"
    back = convert(there.output, "vllm", engine="sglang")
    assert back.report.verdict == check(back.text, engine="vllm", form="json").verdict == "accepts"


def test_words_without_a_counterpart_are_named_and_left_out() -> None:
    flags = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "h", "--speculative-num-steps", "3"]
    flags += ["--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"]
    flags += ["--speculative-draft-attention-backend", "trtllm_mha"]
    converted = convert(flags, "vllm")
    assert "attention_backend" not in converted.output
    assert "SPC402" in [each.code for each in converted.report.diagnostics]
    quiet = convert([*flags[:-2], "--speculative-draft-model-quantization", "unquant"], "vllm")
    assert "SPC402" not in [each.code for each in quiet.report.diagnostics]
    block = {"method": "eagle3", "model": "h", "num_speculative_tokens": 3, "rejection_sample_method": "block"}
    assert "SPC402" not in [each.code for each in convert(block, "sglang").report.diagnostics]


def test_a_tree_of_uno_and_the_depth_of_ngram_stay() -> None:
    uno = ["--speculative-algorithm", "UNO", "--uno-lora-path", "u", "--speculative-num-draft-tokens", "8"]
    uno += ["--speculative-eagle-topk", "2", "--speculative-num-steps", "4", "--attention-backend", "fa3"]
    assert " ".join(["--speculative-eagle-topk", "2"]) in convert(uno, "sglang").text
    ngram = ["--speculative-algorithm", "NGRAM", "--speculative-num-steps", "7", "--speculative-num-draft-tokens", "6"]
    assert "--speculative-num-steps 7" in convert(ngram, "sglang").text


def test_the_command_line_keeps_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from specctl.cli.main import run

    path = tmp_path / "serve.yaml"
    path.write_text(FILE)
    assert run(["convert", str(path), "--to", "trtllm", "--to-release", "1.4.0rc0"]) == 0
    out = capsys.readouterr()
    assert out.out == MOVED
    assert "TensorRT-LLM 1.2.1 refuses" not in out.err


@pytest.mark.parametrize(
    ("setting", "release", "help_text"),
    [
        ("decoding_type: Eagle, max_matching_ngram_size: 3", "1.2.1", "it is a key of NGram; leave it out"),
        ("decoding_type: Eagle, sa_config: {}", "1.2.1", "leave it out; release 1.4.0rc0 has it (--release 1.4.0rc0)"),
        ("decoding_type: Draft_Target, eagle3_one_model: true", "1.4.0rc0", "leave it out"),
    ],
)
def test_a_key_of_another_type_or_release(setting: str, release: str, help_text: str) -> None:
    text = f"speculative_config: {{max_draft_len: 3, speculative_model: d, {setting}}}"
    report = check(text, engine="trtllm", release=release)
    assert [each.help for each in report.diagnostics if each.code == "SPC005"] == [help_text]


def test_the_engine_is_told_by_the_type_below_a_wrong_key() -> None:
    report = check("speculative_decoding_config: {decoding_type: MTP, num_nextn_predict_layers: 3}")
    assert report.engine == "trtllm"
    assert "did you mean speculative_config?" in [each.help for each in report.diagnostics]
