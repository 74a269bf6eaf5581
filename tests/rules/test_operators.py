"""What people who keep settings for other machines, older releases and several engines meet."""

from __future__ import annotations

from importlib import resources

import pytest

from specctl import check, convert

NOWHERE = "speculative_config: {decoding_type: DraftTarget, max_draft_len: 4, speculative_model_dir: /models/draft}\n"


@pytest.mark.parametrize(
    ("source", "engine", "verdict", "severity"),
    [
        (NOWHERE, "trtllm", "accepts", "warning"),
        ("speculative-config: {model: /models/draft, num_speculative_tokens: 3}\n", "vllm", "accepts", "warning"),
        (
            "speculative-algorithm: STANDALONE\nspeculative-draft-model-path: /models/d\n",
            "sglang",
            "accepts",
            "warning",
        ),
        (NOWHERE.replace("/models", "./models"), "trtllm", "refuses", "error"),  # a place in the current folder
        (["--spec-model", "/models/draft", "--spec-tokens", "3"], "vllm", "refuses", "error"),  # typed where it runs
    ],
)
def test_a_draft_of_another_machine(source: str | list[str], engine: str, verdict: str, severity: str) -> None:
    report = check(source, engine=engine)
    assert report.verdict == verdict
    assert [each.severity for each in report.diagnostics if each.code == "SPC201"] == [severity]


@pytest.mark.parametrize(
    ("source", "severities"),
    [
        ('{"method": "eagle3", "model": "org/head"}', ["warning"]),
        ('{"method": "draft_model", "model": "org/draft"}', ["warning"]),
        ('{"method": "eagle3", "model": "org/head", "num_draft_tokens": 4}', []),  # that key is said to be meant
        ('{"method": "mtp"}', ["error"]),
        ('{"method": "dspark", "model": "org/dspark"}', []),  # its block size is the count
        ('{"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}', []),
    ],
)
def test_a_count_that_only_the_draft_could_bring(source: str, severities: list[str]) -> None:
    assert [each.severity for each in check(source).diagnostics if each.code == "SPC102"] == severities


def test_a_count_that_the_source_leaves_to_its_engine_is_missed() -> None:
    words = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "org/head"]
    converted = convert(check(words, engine="sglang"), "vllm")
    assert "SPC102" in [each.code for each in converted.report.diagnostics]
    numbers = ["--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"]
    again = convert(check([*words, *numbers], engine="sglang"), "sglang")
    assert not [each.message for each in again.report.diagnostics if each.code == "SPC404"]


def test_a_word_that_is_not_taken_is_not_judged_for_its_meaning() -> None:
    text = (
        '{"method": "eagle3", "model": "o/h", "num_speculative_tokens": 3, "rejection_sample_method": "probabilistic"}'
    )
    assert [each.code for each in check(text).diagnostics] == ["SPC105"]


@pytest.mark.parametrize(
    ("flag", "value", "good"),
    [
        ("--log-requests-level", "2", True),
        ("--log-requests-level", "7", False),
        ("--hicache-write-policy", "write_back", True),
        ("--hicache-write-policy", "write-back", False),
        ("--mamba-backend", "cuda", False),
    ],
)
def test_words_that_sglangs_other_flags_take(flag: str, value: str, *, good: bool) -> None:
    words = ["--model-path", "m", "--speculative-algorithm", "NGRAM", flag, value]
    assert ("SPC006" not in [each.code for each in check(words, engine="sglang").diagnostics]) == good


def test_a_digit_that_is_no_number() -> None:
    assert check(["--speculative-num-steps", "\u00b9"], engine="sglang").verdict == "refuses"
    assert check(["vllm", "serve", "m", "--num-speculative-tokens", "\u00b9"]).verdict == "refuses"


def test_the_public_names() -> None:
    import specctl

    assert all(getattr(specctl, name).__doc__ for name in specctl.__all__)
    assert resources.files("specctl").joinpath("py.typed").is_file()  # type checkers read the annotations
    with pytest.raises(specctl.UsageError):
        check("{}", engine="vlm")
    with pytest.raises(specctl.SpecctlError):
        specctl.load({"method": "ngrm"})


def test_a_report_prints_as_the_command_does() -> None:
    report = check('{"method": "ngram", "num_speculative_tokens": "4", "prompt_lookup_max": 4, "prompt_lookup_min": 2}')
    assert repr(report) == "<Report: vllm 0.31.0 accepts; 0 errors, 1 warnings>"
    assert 'warning[SPC010]: num_speculative_tokens is "4"; the engine reads it as 4' in str(report)
    assert str(convert(report, "trtllm")).startswith("speculative_config:\n  decoding_type: NGram\n")


@pytest.mark.parametrize(
    ("words", "good"),
    [
        (["-tp", "4"], True),
        (["-tp", "four"], False),
        (["--gpu-memory-utilization", "0.9"], True),
        (["--gpu_memory_utilization=90%"], False),
        (["--max-model-len", "8k"], True),
        (["--max-model-len", "auto"], True),
        (["--max-model-len", "8.5"], False),
        (["--kv-cache-dtype", "fp8"], True),
        (["--kv-cache-dtype", "fp8e4m3"], False),
        (["--kv-transfer-config", '{"kv_connector": "x"}'], True),
        (["--kv-transfer-config", "x"], False),
        (["--max-log-len", "None"], True),
    ],
)
def test_values_that_vllms_other_flags_take(words: list[str], *, good: bool) -> None:
    report = check(["vllm", "serve", "m", *words, "--spec-method", "suffix"])
    assert ("SPC006" not in [each.code for each in report.diagnostics]) == good


@pytest.mark.parametrize(
    ("release", "schedule", "cure"),
    [
        ("1.4.0rc0", "{1: 4, 4: 2, 8: 0}", "if it was written for 1.2.1, write {3: 4, 7: 2}"),
        ("1.4.0rc0", "{3: 4, 7: 2}", None),
        ("1.4.0rc0", "{1: 4, 8: 2}", None),
        ("1.2.1", "{1: 4, 4: 2, 8: 0}", None),
    ],
)
def test_a_schedule_that_was_written_for_the_older_release(release: str, schedule: str, cure: str | None) -> None:
    text = (
        "speculative_config: {decoding_type: NGram, max_draft_len: 4, max_matching_ngram_size: 2, "
        f"draft_len_schedule: {schedule}}}"
    )
    report = check(text, engine="trtllm", release=release)
    assert report.valid
    assert [each.help for each in report.diagnostics if each.code == "SPC153"] == ([cure] if cure else [])
