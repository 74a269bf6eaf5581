"""`check` on odd sources: it answers with diagnostics, and raises for wrong use of itself alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl import check, convert
from specctl.errors import MissingError, UsageError

JSON = '{"method": "ngram", "num_speculative_tokens": 3}'
WORDS = ["--speculative-config", JSON]
LINE = f"--speculative-config '{JSON}'"


def codes(report: Any) -> list[str]:
    return [each.code for each in report.diagnostics if each.severity == "error"]


@pytest.mark.parametrize(
    ("source", "form"),
    [
        (LINE, "argv"),
        (LINE, "auto"),
        (f"vllm serve m \\\n  {LINE}", "auto"),
        (f"python3 -m vllm.entrypoints.openai.api_server {LINE}", "auto"),
        (LINE.encode(), "argv"),
        (WORDS, "auto"),
        (tuple(WORDS), "argv"),
        (JSON, "auto"),
        (JSON.encode(), "auto"),
        (bytearray(JSON.encode()), "json"),
        (f"speculative_config:\n  {JSON}\n", "auto"),
        ({"method": "ngram", "num_speculative_tokens": 3}, "auto"),
        ({"method": "ngram", "num_speculative_tokens": 3}, "json"),
        ({"model": "m", "speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, "python"),
    ],
)
def test_carriers_of_one_setting(source: Any, form: str) -> None:
    for engine in ("auto", "vllm"):
        report = check(source, form=form, engine=engine)
        assert (report.engine, report.verdict, codes(report)) == ("vllm", "accepts", [])
        assert report.effective["num_speculative_tokens"] == 3


def test_a_text_in_the_words_of_sglang() -> None:
    report = check("python -m sglang.launch_server --model-path m --speculative-algorithm NGRAM")
    assert (report.engine, report.effective["speculative_num_draft_tokens"]) == ("sglang", 12)
    assert check("SGLANG_RAGGED_VERIFY_MODE=x sglang serve m --speculative-algorithm NGRAM").verdict == "refuses"


@pytest.mark.parametrize("source", [[], (), "", "  \n", b"", None, {}])
def test_nothing_sets_no_speculation(source: Any) -> None:
    assert codes(check(source)) == ["SPC013"]
    assert check(source, engine="vllm").spec is None
    assert check(source, engine="vllm").verdict == "accepts"


def test_keys_that_are_no_text() -> None:
    report = check({1: 2, None: 3, ("a",): 4, "num_speculative_tokens": 3, "method": "ngram"}, engine="vllm")
    assert codes(report) == ["SPC005"] * 3
    assert all(each.span is not None for each in report.diagnostics)
    assert check({1: 2}, engine="sglang").verdict == "refuses"
    assert check({"speculative_config": {1: 2, "decoding_type": "NGram"}}).engine == "trtllm"


def test_a_value_that_holds_itself() -> None:
    value: dict[str, Any] = {"method": "ngram"}
    value["more"] = value
    assert codes(check(value, engine="vllm")) == ["SPC011"]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (JSON, {"form": "toml"}),
        (JSON, {"form": None}),
        (JSON, {"engine": "llama.cpp"}),
        (JSON, {"engine": None}),
        (JSON, {"engine": "vllm", "release": "latest"}),
        (JSON, {"release": 3}),
        (JSON, {"engine_args": ["a"]}),
        (JSON, {"env": "A=1"}),
        (JSON, {"host": 1}),
        (JSON, {"target": 1}),
        (JSON, {"platform": 1}),
        ({"a": 1}, {"form": "argv"}),
        (["--spec-tokens", 3], {"form": "argv"}),
        (object(), {}),
        ({"a"}, {}),
    ],
)
def test_wrong_use_is_a_usage_error(source: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        check(source, **options)


@pytest.mark.parametrize("name", ["nowhere.yaml", "x\0y", "x" * 5000, "."])
def test_paths_that_cannot_be_read(name: str) -> None:
    with pytest.raises(MissingError):
        check(Path(name))


def test_an_unknown_release_is_said() -> None:
    report = check(JSON, release="0.99")
    assert report.release == "0.31.0"
    assert any("0.99 is not known" in note for note in report.result.assumptions)
    assert any(
        "has none" in note for note in check({"specctl": 1, "method": "suffix"}, release="7.1").result.assumptions
    )
    converted = convert(JSON, "trtllm", to_release="9.9")
    assert converted.release == "1.4.0rc0"
    assert any("9.9 of TensorRT-LLM is not known" in note for note in converted.report.result.assumptions)
    with pytest.raises(UsageError):
        convert(JSON, "specctl", to_release="next")


def test_keys_of_the_setting_at_the_root_of_a_file() -> None:
    report = check("method: ngram\nnum_speculative_tokens: 3\n", form="yaml", engine="vllm")
    assert codes(report) == ["SPC007"]
    assert "below a line speculative-config:" in (report.diagnostics[0].help or "")
    fix = report.diagnostics[0].fix
    assert fix is not None
    assert check(json.dumps(fix.replacement), form="yaml", engine="vllm").verdict == "accepts"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=60) | st.binary(max_size=60) | VALUES,
    st.sampled_from(["auto", "json", "yaml", "argv", "python"]),
    st.sampled_from(["auto", "vllm", "sglang", "trtllm", "specctl"]),
)
def test_any_source_is_answered(source: Any, form: str, engine: str) -> None:
    try:
        report = check(source, form=form, engine=engine)
    except UsageError:
        return
    lines = report.result.text.split("\n")
    assert report.verdict in ("accepts", "refuses", "fails-at-start")
    for span in (each.span for each in report.diagnostics if each.span is not None):
        assert 1 <= span.line <= span.end_line <= len(lines)
        assert 1 <= span.column <= len(lines[span.line - 1]) + 1
