"""Every rule's docstring is its page and its test: a wrong example gets the rule's code, a right one does not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from specctl.rules.catalog import Rule, rules
from specctl.rules.checker import check
from specctl.rules.examples import Example, examples_of
from specctl.rules.pages import page, table

ALL = [(rule, example) for rule in rules().values() for example in examples_of(rule)]
# Codes that no single setting can show: they need a file, a folder or a conversion.
WITHOUT = {
    "SPC218",
    "SPC219",
    "SPC224",
    "SPC228",
    "SPC001",
    "SPC013",
    "SPC014",
    "SPC015",
    "SPC321",
    "SPC326",
    "SPC338",
    "SPC401",
    "SPC402",
    "SPC403",
    "SPC404",
}


def run(example: Example, folder: Path) -> Any:
    for name in ("target", "draft"):
        if name in example.facts:
            (folder / name).mkdir()
            (folder / name / "config.json").write_text(json.dumps(example.facts[name]))
    options: dict[str, Any] = {"engine": example.engine, "release": example.release}
    options |= {
        "engine_args": example.facts.get("args"),
        "env": example.facts.get("env"),
        "host": example.facts.get("host"),
        "platform": example.facts.get("platform", {}).get("name"),
    }
    if "target" in example.facts and "--model-path" not in example.text:
        options["target"] = "./target"
    text = example.text
    if text.startswith(("--", "python ")):
        return check(_tokens(text), form="argv", **options)
    form = "json" if example.engine == "vllm" else "yaml"
    return check(text, form=form, **options)


def _tokens(text: str) -> list[str]:
    """Words of an example; a JSON value stands without shell quotes there."""
    if "{" not in text:
        return shlex.split(text)
    head, brace, tail = text.partition("{")
    value, close, rest = tail.rpartition("}")
    return [*head.split(), brace + value + close, *rest.split()]


@pytest.mark.parametrize(
    ("rule", "example"), ALL, ids=[f"{rule.code}-{number}" for number, (rule, _) in enumerate(ALL)]
)
def test_example(rule: Rule, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = run(example, tmp_path)
    codes = {each.code for each in report.diagnostics}
    if example.bad:
        assert rule.code in codes, [(each.code, each.message) for each in report.diagnostics]
    else:
        assert rule.code not in codes, [(each.code, each.message) for each in report.diagnostics]
        assert report.valid, [(each.code, each.message) for each in report.diagnostics]


def test_every_rule_has_a_page_and_an_example() -> None:
    for rule in rules().values():
        assert rule.title, rule.code
        assert page(rule).startswith(rule.code)
        assert rule.code in WITHOUT or any(example.bad for example in examples_of(rule)), rule.code


def test_codes_are_unique_and_in_families() -> None:
    assert len({rule.name for rule in rules().values()}) == len(rules())
    assert all(code[3] in "012345" for code in rules())


def test_rule_table_is_fresh() -> None:
    assert (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8") == table()


def test_no_rule_names_a_file_format() -> None:
    room = Path(__file__).parents[2] / "specctl" / "rules"
    for file in room.glob("spc*.py"):
        code = file.read_text(encoding="utf-8").split('"""')[2::2]
        assert "read_yaml" not in "".join(code)
        assert "read_json" not in "".join(code)


def test_index_is_fresh() -> None:
    from specctl.rules.index import INDEX
    from specctl.rules.index_writer import rows

    assert list(INDEX) == rows(), "run python -m specctl.rules.index_writer"
