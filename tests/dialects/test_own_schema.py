"""specctl's own files are held against the committed schema: each fault at its place, none said twice."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from specctl import check, convert
from specctl.spec.release import allows, bounds

HEAD = "specctl: 1\nmethod: ngram\nnum_speculative_tokens: 4\n"

# The text behind HEAD -> code, line and column of the place, and words of the message.
FAULTS: dict[str, tuple[str, int, int, str]] = {
    'engines: {vlm: ">=0.31"}': ("SPC005", 4, 11, 'no key "vlm"'),
    "engines: {vllm: later}": ("SPC105", 4, 17, "a range of releases"),
    "engines: [vllm]": ("SPC006", 4, 10, "an object"),
    "schedule: [[1, 8, '4'], [9, null, 0]]": ("SPC006", 4, 19, "schedule[0][2]"),
    "published:\n  - {acceptance_length: {HumanEval: 3.0}}": ("SPC160", 5, 5, "published[0] lacks k"),
    "published:\n  - {k: 3}": ("SPC160", 5, 5, "lacks acceptance_length or acceptance_rate"),
    "published:\n  - {k: 3, acceptance_length: {a: 0.5}}": ("SPC104", 5, 35, "at least 1"),
    "published:\n  - {k: 3, acceptance_rate: {a: 2}, note: x}": ("SPC104", 5, 33, "at most 1"),
    "advice: 3": ("SPC006", 4, 9, "text or a list"),
    "source: [a, 3]": ("SPC006", 4, 13, "source[1]"),
    "engine_options: {vlm: {}}": ("SPC005", 4, 18, 'no key "vlm"'),
    "engine_options: {vllm: {disable_paded_drafter_batch: true}}": ("SPC005", 4, 25, "disable_paded"),
    "engine_options: {trtllm: {is_kept_all: true}}": ("SPC005", 4, 27, "is_kept_all"),
    "engine_options: {vllm: [1]}": ("SPC006", 4, 24, "an object"),
    "prompt_lookup_max: x": ("SPC006", 4, 20, "a whole number"),
    "promt_lookup_max: 3": ("SPC005", 4, 1, "promt_lookup_max"),
    "prompt_lookup_max: 0": ("SPC104", 4, 20, "at least 1"),
    "draft: {tensor_parallel: 2}": ("SPC005", 4, 9, "tensor_parallel"),
    "acceptance: {method: lucky}": ("SPC105", 4, 22, "lucky"),
    "tree: {topk: 0}": ("SPC104", 4, 14, "at least 1"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_is_named_at_its_place(text: str) -> None:
    code, line, column, words = FAULTS[text]
    report = check(HEAD + text + "\n", form="yaml")
    found = [each for each in report.diagnostics if each.code == code and words in each.message]
    assert found, [(each.code, each.message) for each in report.diagnostics]
    assert found[0].span is not None
    assert (found[0].span.line, found[0].span.column) == (line, column)
    assert not report.valid


@pytest.mark.parametrize("text", FAULTS)
def test_no_fault_is_said_twice(text: str) -> None:
    report = check(HEAD + text + "\n", form="yaml")
    routes = [each.route for each in report.diagnostics if each.severity == "error"]
    assert len(routes) == len(set(routes)), [(each.code, each.message) for each in report.diagnostics]


@pytest.mark.parametrize("text", [text for text in FAULTS if not text.startswith(("draft", "tree", "acc", "pro"))])
def test_the_faults_stay_when_an_engine_judges(text: str) -> None:
    code, line, column, _ = FAULTS[text]
    report = check(HEAD + text + "\n", form="yaml", engine="vllm")
    places = {(each.code, each.span.line, each.span.column) for each in report.diagnostics if each.span}
    assert (code, line, column) in places


@pytest.mark.parametrize("key", ["engines", "source", "published", "advice", "engine_options", "draft", "schedule"])
def test_a_key_left_empty_is_as_if_left_out(key: str) -> None:
    assert check(f"{HEAD}{key}:\n", form="yaml").valid


def test_jsonschema_is_loaded_for_own_files_alone() -> None:
    script = (
        "import sys; from specctl import check; check({'method': 'ngram', 'num_speculative_tokens': 4}, engine='vllm');"
        "assert 'jsonschema' not in sys.modules;"
        "check('specctl: 1\\nmethod: ngram\\nnum_speculative_tokens: 4', form='yaml');"
        "assert 'jsonschema' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def own(**more: Any) -> str:
    import json

    return json.dumps({"specctl": 1, "method": "ngram", "num_speculative_tokens": 4} | more)


def test_an_excluded_release_is_an_error_with_the_release_that_fits() -> None:
    text = own(engines={"trtllm": ">=1.4.0rc0"})
    refused = convert(text, "trtllm", form="yaml").report
    assert [each.code for each in refused.diagnostics if each.severity == "error"] == ["SPC405"]
    assert "TensorRT-LLM 1.4.0rc0" in str(refused.diagnostics[0].help)
    assert convert(text, "trtllm", to_release="1.4.0rc0", form="yaml").report.valid
    assert not check(text, form="yaml", engine="trtllm").valid
    assert check(text, form="yaml", engine="trtllm", release="1.4.0rc0").valid


def test_the_release_that_was_asked_for_counts_not_the_known_one_beside_it() -> None:
    text = own(engines={"vllm": ">=0.31"})
    assert convert(text, "vllm", form="yaml").report.valid
    assert not convert(text, "vllm", to_release="0.20.0", form="yaml").report.valid
    assert not check(text, form="yaml", engine="vllm", release="0.20.0").valid


def test_an_engine_that_is_not_named_is_a_warning() -> None:
    report = convert(own(engines={"trtllm": "*"}), "vllm", form="yaml").report
    assert [(each.code, each.severity) for each in report.diagnostics] == [("SPC405", "warning")]
    assert not check(own(engines={"trtllm": "*"}), form="yaml").diagnostics


def test_what_a_file_says_of_itself_is_written_again() -> None:
    about = {
        "engines": {"vllm": ">=0.31"},
        "source": "a card",
        "published": [{"k": 4, "acceptance_length": {"GSM8K": 2.5}}],
        "advice": "up to 8 requests",
    }
    options = {"engine_options": {"vllm": {"disable_padded_drafter_batch": True}}}
    written = convert(own(**about, **options), "specctl", form="yaml").output
    assert about.items() <= written.items()
    assert written["engine_options"] == options["engine_options"]
    assert convert(own(**about, **options), "vllm", form="yaml").output["disable_padded_drafter_batch"] is True


@pytest.mark.parametrize(
    ("engine", "key", "value", "written"),
    [
        ("vllm", "disable_padded_drafter_batch", True, '"disable_padded_drafter_batch": true'),
        ("sglang", "speculative_attention_mode", "decode", "--speculative-attention-mode decode"),
        ("trtllm", "is_keep_all", False, "is_keep_all: false"),
    ],
)
def test_native_keys_go_there_and_back(engine: str, key: str, value: Any, written: str) -> None:
    there = convert(own(engine_options={engine: {key: value}}), engine, form="yaml")
    assert there.report.valid
    assert written in there.text
    source: Any = there.output if engine == "sglang" else there.text
    back = check(source, engine=engine, form={"vllm": "json", "sglang": "argv", "trtllm": "yaml"}[engine])
    assert back.config is not None
    assert convert(back.config, engine).text == there.text
    assert key in convert(back.config, "specctl").text


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("vllm", {"num_speculative_tokens": 9}),
        ("sglang", {"speculative_num_draft_tokens": 9}),
        ("trtllm", {"max_draft_len": 9}),
    ],
)
def test_a_native_key_that_overrules_the_setting_is_named(engine: str, options: dict[str, int]) -> None:
    report = convert(own(engine_options={engine: options}), engine, form="yaml").report
    assert any(each.code == "SPC404" and "the native key wins" in each.message for each in report.diagnostics)
    same = {"vllm": {"num_speculative_tokens": 4}, "trtllm": {"max_draft_len": 4}}.get(engine)
    if same:
        report = convert(own(engine_options={engine: same}), engine, form="yaml").report
        assert not any("native key wins" in each.message for each in report.diagnostics)


@pytest.mark.parametrize(
    ("text", "release", "inside"),
    [
        (">=0.31", "0.31.0", True),
        (">=0.31,<0.33", "0.33.0", False),
        ("== 1.2.1", "1.2.1", True),
        ("!=1.2.1", "1.2.1", False),
        (">1.2", "1.2.1", True),
        ("<=1.4", "1.4.0rc0", True),
        (">=1.4", "1.4.0rc0", False),
        ("*", "0.1", True),
    ],
)
def test_ranges(text: str, release: str, inside: bool) -> None:
    assert allows(text, release) is inside


@pytest.mark.parametrize("text", ["", "0.31", ">=", "~=0.31", ">=0.31 <0.33", "latest"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="no range"):
        bounds(text)
