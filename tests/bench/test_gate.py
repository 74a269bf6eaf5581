"""Thresholds and regressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specctl.bench.gate import Gate, check, read_gate
from specctl.bench.saved import load_report
from specctl.errors import DamagedError, MissingError, SpecctlError, UsageError
from tests.bench.test_report import usual


def changed(**route: Any) -> dict[str, Any]:
    """The usual report with some figures of ngram's run at level 1 changed."""
    report = json.loads(json.dumps(usual()))
    report["runs"][1] |= {name: value for name, value in route.items() if name in report["runs"][1]}
    report["comparison"][0] |= {name: value for name, value in route.items() if name in report["comparison"][0]}
    return report


def test_no_gate_unless_asked() -> None:
    assert read_gate(False, None, None, None) is None
    assert read_gate(True, None, None, None) == Gate()
    assert read_gate(False, 2.5, None, None) == Gate(2.5)


def test_a_bare_gate_wants_a_kept_draft_at_the_lowest_level() -> None:
    assert check(usual(), Gate()) == []
    report = usual()
    report["verdict"] = {"keep_up_to_concurrency": 0, "text": "Keep plain decoding."}
    assert check(report, Gate()) == ["no draft is kept at the lowest concurrency: Keep plain decoding."]


def test_acceptance_length() -> None:
    assert check(usual(), Gate(min_acceptance_length=3.0)) == []
    found = check(changed(mean_acceptance_length=2.9), Gate(min_acceptance_length=3.0))
    assert found == ["ngram (k=4) at concurrency 1: mean acceptance length 2.900 is below 3"]
    found = check(changed(mean_acceptance_length=None), Gate(min_acceptance_length=3.0))
    assert found == ["ngram (k=4) at concurrency 1: mean acceptance length unknown, 3 is wanted"]


def test_speedup_is_that_of_the_best_candidate_at_each_level() -> None:
    assert check(usual(), Gate(min_speedup=1.9)) == []
    assert check(usual(), Gate(min_speedup=2.1)) == [
        "concurrency 1: the best speed-up is 2.000, 2.1 is wanted",
        "concurrency 4: the best speed-up is 2.000, 2.1 is wanted",
    ]


def test_regressions_need_two_percent_and_intervals_that_are_apart() -> None:
    before = Gate(before=usual())
    assert check(usual(), before) == []
    assert check(changed(tpot_speedup=1.1, tpot_speedup_ci=[1.0, 1.3]), before) == []
    assert check(changed(tpot_speedup=1.24, tpot_speedup_ci=[1.23, 1.245]), before) == []
    found = check(changed(tpot_speedup=0.9, tpot_speedup_ci=[0.85, 0.95]), before)
    assert found == ["ngram (k=4) at concurrency 1: the speed-up fell from 1.250 to 0.900"]
    found = check(changed(mean_acceptance_length=2.9), before)
    assert found == ["ngram (k=4) at concurrency 1: mean acceptance length fell from 3.000 to 2.900"]


def test_a_run_that_is_missing_and_another_workload_fail() -> None:
    gone = usual()
    del gone["runs"][1]
    assert "ngram (k=4) at concurrency 1: measured before, missing now" in check(gone, Gate(before=usual()))
    other = usual()
    other["workload"]["temperature"] = 0.7
    assert check(other, Gate(before=usual())) == [
        "the older report is of another workload (temperature), so nothing can be compared"
    ]


@pytest.mark.parametrize(("length", "speedup"), [(0.5, None), (None, 0.0), (float("nan"), None), (None, float("inf"))])
def test_thresholds_that_are_none(length: float | None, speedup: float | None) -> None:
    with pytest.raises(UsageError, match="--min-"):
        read_gate(True, length, speedup, None)


def test_saved_reports_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps(usual()))
    assert load_report(str(file))["runs"] == json.loads(file.read_text())["runs"]
    for text, kind, why in (
        ("{", DamagedError, "no JSON"),
        ("[]", SpecctlError, "holds no object"),
        ('{"format_version": 2}', SpecctlError, "format_version is 2"),
        ('{"format_version": 1}', SpecctlError, "environment is missing"),
    ):
        file.write_text(text)
        with pytest.raises(kind, match=why):
            load_report(str(file))
    with pytest.raises(MissingError, match="cannot read"):
        load_report(str(tmp_path / "absent.json"))


def test_a_report_of_an_older_release_is_filled_with_what_it_lacks(tmp_path: Path) -> None:
    report = usual()
    for run in report["runs"]:
        del run["request_goodput"], run["by_context"], run["std_ms"]
    del report["notes"]
    file = tmp_path / "r.json"
    file.write_text(json.dumps(report))
    assert load_report(str(file))["runs"][0]["request_goodput"] is None
