"""The same two results in every format."""

from __future__ import annotations

import json

import pytest

from specctl.diagnostics import Diagnostic, Fix, Result, Skipped, Span, as_github, as_json, as_sarif, as_text

TEXT = 'speculative-config:\n  method: ngram\n  num_speculative_tokens: "3"\n'
FOUND = Diagnostic(
    "SPC010",
    "value-coerced",
    "warning",
    'num_speculative_tokens is "3"; the engine reads it as 3',
    ("speculative-config", "num_speculative_tokens"),
    Span(3, 27, 3, 30),
    "write 3",
    ("a note",),
    Fix(("speculative-config", "num_speculative_tokens"), 3),
)
WRONG = Diagnostic("SPC104", "value-out-of-range", "error", "50% is, well: wrong", (), Span(1, 1, 2, 4), "a\nb")
RESULT = Result(
    "f.yaml",
    TEXT,
    "vllm",
    "vllm",
    "0.31.0",
    "accepts",
    {"method": "ngram"},
    {"k": 3},
    (FOUND,),
    (Skipped("SPC203", ("target",)),),
)

GOLDEN = """warning[SPC010]: num_speculative_tokens is "3"; the engine reads it as 3
  --> f.yaml:3:27
   |
 3 |   num_speculative_tokens: "3"
   |                           ^^^
  note: a note
  help: write 3

f.yaml: vLLM 0.31.0 accepts this setting
  effective: k=3
  not checked without the target: SPC203

1 setting checked: 0 errors, 1 warning
"""


def test_text() -> None:
    assert as_text.render([RESULT]) == GOLDEN
    assert "\x1b[" in as_text.render([RESULT], colour=True)


def test_long_lines_are_cut_around_the_place() -> None:
    line = "x" * 300 + "HERE" + "y" * 300
    lines = as_text.snippet(line, Span(1, 301, 1, 305))
    assert "HERE" in lines[1]
    assert len(lines[1]) < 140
    assert lines[1][lines[2].index("^") :].startswith("HERE")


def test_json() -> None:
    data = json.loads(as_json.render([RESULT, None, None]))
    assert (data["format_version"], data["valid"], data["errors"], data["warnings"], data["skipped_files"]) == (
        1,
        True,
        0,
        1,
        2,
    )
    found = data["results"][0]["diagnostics"][0]
    assert (found["line"], found["column"], found["end_line"], found["end_column"]) == (3, 27, 3, 30)
    assert found["fix"] == {"route": ["speculative-config", "num_speculative_tokens"], "replacement": 3}
    assert data["results"][0]["skipped"] == [{"code": "SPC203", "needs": ["target"]}]


def test_json_has_no_nan() -> None:
    assert as_json.plain({"a": float("nan"), 1: (2, {3})}) == {"a": "nan", "1": [2, [3]]}


def test_github() -> None:
    wrong = Result("a,b.yaml", "", "vllm", "vllm", "0.31.0", "refuses", None, {}, (WRONG,))
    lines = as_github.render([RESULT, wrong]).splitlines()
    assert lines[0].startswith(
        "::warning file=f.yaml,title=SPC010 value-coerced,line=3,endLine=3,col=27,endColumn=30::num"
    )
    assert (
        lines[1] == "::error file=a%2Cb.yaml,title=SPC104 value-out-of-range,line=1,endLine=2"
        "::50%25 is, well: wrong%0Ahelp: a%0Ab"
    )


def test_sarif() -> None:
    log = json.loads(as_sarif.render([RESULT, None], version="0.1.0"))
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][0]["id"] == "SPC010"
    found = run["results"][0]
    assert found["level"] == "warning"
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "f.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 27, "endLine": 3, "endColumn": 30}


@pytest.mark.parametrize("name", ["<argv>", "/a b/c.yaml"])
def test_sarif_places_of_odd_sources(name: str) -> None:
    one = Result(name, "", "vllm", "vllm", "0", "refuses", None, {}, (WRONG,))
    place = json.loads(as_sarif.render([one]))["runs"][0]["results"][0]["locations"][0]
    assert ("logicalLocations" in place) == name.startswith("<")
