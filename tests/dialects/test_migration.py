"""Names of older releases: each is refused with the line that takes its place, and the engine takes that line."""

from __future__ import annotations

import re
from typing import Any

import pytest

from specctl.dialects import sglang, trtllm, vllm
from specctl.rules.checker import check

KEYS = {row.key for row in vllm.ROWS}
EAGLE3 = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}


def first(report: Any) -> Any:
    assert report.verdict == "refuses"
    return next(each for each in report.diagnostics if each.severity == "error")


@pytest.mark.parametrize("flag", vllm.REMOVED_FLAGS)
def test_flags_of_vllm(flag: str) -> None:
    found = first(check([flag, "4"], engine="vllm", form="argv"))
    assert (found.code, "removed" in found.message) == ("SPC007", True)
    named = set(re.findall(r'"(\w+)":', found.help)) - {"method"}
    assert named <= KEYS
    assert named or "leave it out" in found.help


@pytest.mark.parametrize("key", vllm.REMOVED_KEYS)
def test_keys_of_vllm(key: str) -> None:
    found = first(check(EAGLE3 | {key: 4}, engine="vllm", form="json"))
    assert found.code == "SPC005"
    assert found.help
    if found.fix is not None:
        kept = check(found.fix.replacement, engine="vllm", form="json").diagnostics
        assert key not in {str(each.route[-1]) for each in kept if each.route and each.code == "SPC005"}


def test_the_cut_off_by_batch_size() -> None:
    for found in (
        first(check(["--speculative-disable-by-batch-size", "16"], engine="vllm", form="argv")),
        first(check(EAGLE3 | {"disable_by_batch_size": 16}, engine="vllm", form="json")),
    ):
        assert "[[1, 15, K], [16, 4096, 0]]" in found.help
    schedule = {"num_speculative_tokens_per_batch_size": [[1, 15, 3], [16, 4096, 0]]}
    assert check(EAGLE3 | schedule, engine="vllm", form="json").verdict == "accepts"


def test_words_of_older_releases_of_vllm() -> None:
    found = first(check(EAGLE3 | {"rejection_sample_method": "probabilistic"}, engine="vllm", form="json"))
    assert '"draft_sample_method": "probabilistic"' in found.help
    found = first(check(EAGLE3 | {"rejection_sample_method": "strict"}, engine="vllm", form="json"))
    assert (found.fix.replacement, "standard" in found.help) == ("standard", True)


@pytest.mark.parametrize("flag", sglang.REMOVED_FLAGS)
def test_flags_of_sglang(flag: str) -> None:
    found = first(check(["--speculative-algorithm", "NGRAM", flag, "4"], engine="sglang", form="argv"))
    assert found.code in ("SPC007", "SPC008")
    assert found.help


@pytest.mark.parametrize("key", trtllm.MOVED)
@pytest.mark.parametrize("release", ["1.2.1", "1.4.0rc0"])
def test_keys_of_tensorrt_llm(key: str, release: str) -> None:
    name = {"1.2.1": "Eagle", "1.4.0rc0": "Eagle3"}[release]
    setting = {"decoding_type": name, "max_draft_len": 3, "speculative_model": "org/head", key: 1}
    report = check({"speculative_config": setting}, engine="trtllm", release=release, form="json")
    if any(row.key == key and row.in_release(release) for row in trtllm.ROWS):
        assert not [each for each in report.diagnostics if each.code == "SPC005"]
    else:
        assert first(report).help


TRT = [
    ("1.4.0rc0", "decoding_type: AUTO, max_draft_len: 5", {"max_draft_len"}),
    ("1.2.1", "decoding_type: AUTO", set()),
    ("1.4.0rc0", "decoding_type: SA, max_draft_len: 3, speculative_model: org/d", {"speculative_model"}),
    ("1.2.1", "decoding_type: Eagle, max_draft_len: 3, speculative_model: o/h, greedy_sampling: true", set()),
    (
        "1.2.1",
        "decoding_type: Eagle, max_draft_len: 3, speculative_model: o/h, greedy_sampling: false",
        {"greedy_sampling"},
    ),
    (
        "1.2.1",
        "decoding_type: Eagle, max_draft_len: 3, speculative_model: o/h, draft_len_schedule: {1: 3, 8: 0}",
        {"draft_len_schedule"},
    ),
    (
        "1.2.1",
        "decoding_type: Eagle, max_draft_len: 3, speculative_model: o/h, eagle3_one_model: false, "
        "draft_len_schedule: {1: 3, 8: 0}",
        set(),
    ),
    ("1.4.0rc0", "decoding_type: Eagle3, max_draft_len: 3, speculative_model: o/h, draft_len_schedule: {8: 3}", set()),
    (
        "1.2.1",
        "decoding_type: Eagle, max_draft_len: 3, speculative_model: o/h, acceptance_window: 100",
        {"acceptance_window"},
    ),
    (
        "1.4.0rc0",
        "decoding_type: MTP, max_draft_len: 3, acceptance_rate_window_size: 9, acceptance_rate_threshold: 0.4",
        set(),
    ),
]


@pytest.mark.parametrize(("release", "text", "idle"), TRT)
def test_keys_that_do_nothing(release: str, text: str, idle: set[str]) -> None:
    report = check(f"speculative_config: {{{text}}}\n", engine="trtllm", release=release)
    found = {str(each.route[-1]) for each in report.diagnostics if each.code == "SPC158"}
    assert (report.verdict, found) == ("accepts", idle)


def test_the_old_name_beside_the_new_one() -> None:
    text = "speculative_config: {decoding_type: MTP, max_draft_len: 3, num_nextn_predict_layers: 3}\n"
    report = check(text, engine="trtllm", release="1.4.0rc0")
    assert [each.code for each in report.diagnostics if each.severity == "warning"] == ["SPC301"]
    assert report.effective["max_draft_len"] == 3
