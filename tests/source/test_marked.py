"""Every value keeps its place; no text makes a traceback; places lie inside the source."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.diagnostics import Span
from specctl.source import Document, read_json, read_yaml
from specctl.source.command import command_document, entry_of
from specctl.source.damage import repaired
from specctl.source.document import from_bytes


def inside(text: str, span: Span) -> bool:
    lines = text.split("\n")
    return (
        1 <= span.line <= span.end_line <= len(lines)
        and 1 <= span.column <= len(lines[span.line - 1]) + 1
        and 1 <= span.end_column <= len(lines[span.end_line - 1]) + 1
    )


def cut(document: Document, *route: str | int) -> str:
    span = document.values[route]
    return document.text.split("\n")[span.line - 1][span.column - 1 : span.end_column - 1]


def test_json_places() -> None:
    document = read_json(Document("x", '{"method": "ngram",\n "list": [1, 2.5, null], "n": {"k": true}}', "json"))
    assert document.value == {"method": "ngram", "list": [1, 2.5, None], "n": {"k": True}}
    assert cut(document, "method") == '"ngram"'
    assert cut(document, "list", 1) == "2.5"
    assert cut(document, "n", "k") == "true"
    assert document.keys[("list",)] == Span(2, 2, 2, 8)


def test_yaml_places() -> None:
    document = read_yaml(Document("x", "a:\n  b: yes\n  c: [1, x]\n", "yaml"))
    assert document.value == {"a": {"b": True, "c": [1, "x"]}}
    assert cut(document, "a", "b") == "yes"
    assert cut(document, "a", "c", 1) == "x"
    assert document.keys[("a", "c")] == Span(3, 3, 3, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1 "b": 2}', "column 9"),
        ("{'a': 1}", "Python dict"),
        ('{"a": 1', "closing brace"),
        ('{"a": 1, // k\n "b": 2}', "comments"),
        ('{"a": True}', "Python dict"),
        ('{"a": 1,}', "comma"),
        ("{\u201ca\u201d: 1}", "typographic"),
        ('{{"a": 1}}', "template"),
        ("{a: 1, b: ngram}", "eaten by a shell"),
        ("method=ngram,k=3", "key=value"),
        ("@spec.json", "not the name of a file"),
        ("ngram", "JSON object"),
        ('\\{"a":1\\}', "quoted twice"),
        ('\'{"a":', "split"),
    ],
)
def test_damaged_json_is_explained(text: str, said: str) -> None:
    document = read_json(Document("x", text, "json"))
    problem = document.problems[0]
    assert said in problem.message + (problem.help or "")
    assert problem.span is not None
    assert inside(text, problem.span)


def test_the_repair_is_json() -> None:
    found = repaired("{'method': 'ngram', 'x': True, 'y': None}")
    assert found is not None
    assert json.loads(found[1]) == {"method": "ngram", "x": True, "y": None}


def test_repeated_keys_are_said() -> None:
    assert read_json(Document("x", '{"a": 1, "a": 2}', "json")).problems[0].code == "SPC004"
    assert read_yaml(Document("x", "a: 1\na: 2\n", "yaml")).problems[0].code == "SPC004"


def test_tabs_are_named() -> None:
    problem = read_yaml(Document("x", "a:\n\tb: 1\n", "yaml")).problems[0]
    assert "line 2" in problem.message
    assert "tab" in problem.message


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"\xff\xfe\x00", b"\x80abc", b""])
def test_odd_bytes(data: bytes) -> None:
    document = from_bytes("x.yaml", data)
    assert document.readable or document.problems[0].code == "SPC001"


def test_a_command_line_shows_its_tokens() -> None:
    document = command_document(["--x", '{"a": 1}', "b c"])
    assert document.text == "--x '{\"a\": 1}' 'b c'"
    assert cut(document, 1) == '{"a": 1}'


def test_entries_of_engines() -> None:
    assert entry_of(["vllm", "serve", "m"]) == ("vllm", 2, 1)
    assert entry_of(["python3", "-m", "sglang.launch_server", "--x"])[0] == "sglang"
    assert entry_of(["trtllm-serve", "m", "--config", "f"]) == ("trtllm", 1, 1)
    assert entry_of(["--spec-method", "ngram"]) == (None, 0, 0)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_explained(text: str) -> None:
    for read in (read_json, read_yaml):
        document = read(Document("x", text, "json"))
        for span in (
            *document.values.values(),
            *document.keys.values(),
            *(p.span for p in document.problems if p.span),
        ):
            assert inside(text, span), (text, span)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_values_are_those_of_the_standard_library(value: object) -> None:
    text = json.dumps(value)
    assert read_json(Document("x", text, "json")).value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a: 1\nk: {{ .Values.k }}\n", "template marks are left in the text", (2, 4)),
        ("? [a]\n: 1\n", "a list or an object cannot be a key; the engine cannot read the file", (1, 3)),
        ("a: !vault x\n", "the YAML tag !vault is unknown to a safe loader; the engine cannot read the file", (1, 4)),
        ("a: !Ref [x]\n", "the YAML tag !Ref is unknown to a safe loader; the engine cannot read the file", (1, 4)),
        ("a: 1\n---\nb: 2\n", "this file holds several YAML documents; the engines read a file with one", (2, 1)),
    ],
)
def test_what_a_safe_loader_does_not_read(text: str, message: str, place: tuple[int, int]) -> None:
    found = read_yaml(Document("x.yaml", text, "yaml")).problems
    assert [each.message for each in found] == [message]
    assert found[0].help
    assert (found[0].span.line, found[0].span.column) == place
    assert inside(text, found[0].span)


def test_tags_that_a_safe_loader_knows() -> None:
    document = read_yaml(Document("x.yaml", "a: !!int '4'\nb: !!set {x}\nc: 2024-01-01\n", "yaml"))
    assert not document.problems
    assert document.value["a"] == 4


def test_utf16_is_named() -> None:
    document = from_bytes("x.yaml", "specctl: 1".encode("utf-16"))
    assert not document.readable
    assert "UTF-16" in document.problems[0].message


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("docker run --gpus all -e A=b vllm/vllm-openai:v1 --model x", ("vllm", 7, 1)),
        ("docker run lmsysorg/sglang:v1 python3 -m sglang.launch_server --model-path x", ("sglang", 6, 0)),
        ("podman run image trtllm-serve x", ("trtllm", 4, 1)),
        ("docker run image", (None, 0, 0)),
    ],
)
def test_containers(line: str, wanted: tuple[str | None, int, int]) -> None:
    assert entry_of(line.split()) == wanted
