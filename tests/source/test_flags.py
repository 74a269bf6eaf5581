"""Setting flags leave the command line in the user's words; flags of two engines do not meet."""

from __future__ import annotations

import pytest

from specctl.dialects.sglang import ROWS, flag
from specctl.errors import UsageError
from specctl.source.flags import SGLANG_SWITCHES, extract


def test_target_may_stand_anywhere() -> None:
    flags = extract(
        ["bench", "--speculative-algorithm", "NGRAM", "demo", "--repeats", "2", "--speculative-adaptive", "x"]
    )
    assert flags.rest == ("bench", "demo", "--repeats", "2", "x")
    assert flags.sglang == ("--speculative-algorithm", "NGRAM", "--speculative-adaptive")


def test_each_whole_setting_is_a_candidate() -> None:
    flags = extract(["--spec", "a", "--spec=b", "-sc", "{}", "--speculative-config={}", "--config", "f.yaml"])
    assert [each.kind for each in flags.candidates()] == ["file", "spec", "spec", "vllm", "vllm"]


def test_dotted_and_short_flags_make_one_candidate() -> None:
    flags = extract(
        ["--spec-method", "ngram", "-sc.prompt_lookup_max", "4", "--speculative-config.num_speculative_tokens=3"]
    )
    assert len(flags.candidates()) == 1
    assert len(flags.vllm) == 5


def test_a_split_json_is_taken_whole() -> None:
    flags = extract(["-sc", '\'{"model":', '"org/a",', '"k":', "4}'", "demo"])
    assert flags.rest == ("demo",)
    assert len(flags.vllm) == 5


def test_two_engines_in_one_command() -> None:
    with pytest.raises(UsageError) as error:
        extract(["--speculative-config", "{}", "--speculative-num-steps", "3"])
    assert "--speculative-config" in error.value.message
    assert "--speculative-num-steps" in error.value.message
    assert error.value.exit_code == 2


def test_other_flags_never_count() -> None:
    assert not extract(["serve", "--max-model-len", "5", "--tp-size", "2"]).taken


def test_everything_behind_two_dashes_is_the_engines() -> None:
    flags = extract(["validate-config", "--", "vllm", "serve", "m", "--speculative-config", "{}"])
    assert flags.rest == ("validate-config",)
    assert flags.engine_command[0] == "vllm"


def test_switches_are_those_of_the_rows() -> None:
    switches = {flag(row.key) for row in ROWS if row.kind == "bool"}
    assert switches <= SGLANG_SWITCHES
