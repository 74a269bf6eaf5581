"""Reports read back from files: what older or shorter ones lack is not measured, anything else is named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from specctl.bench import versus
from specctl.bench.formats import FORMATS, as_text
from specctl.bench.page import page
from specctl.bench.saved import load_report
from specctl.errors import DamagedError, SpecctlError
from tests.bench.test_report import usual

# A report with nothing but what the format promises.
LEAST: dict[str, Any] = {
    "format_version": 1,
    "environment": {},
    "workload": {},
    "runs": [
        {"name": name, "k": k, "concurrency": 1, "tpot_ms": {"mean": ms, "median": ms, "p99": ms},
         "output_throughput": 50.0, "mean_acceptance_length": length}
        for name, k, ms, length in (("baseline", None, 20.0, None), ("ngram", 4, 10.0, 2.5))
    ],
    "comparison": [
        {"baseline": "baseline", "candidate": "ngram", "k": 4, "concurrency": 1, "tpot_speedup": 2.0,
         "throughput_ratio": 2.0, "tpot_speedup_ci": [1.8, 2.2], "keep": True}
    ],
    "verdict": {"keep_up_to_concurrency": 1, "text": "Keep it."},
}  # fmt: skip


def saved(folder: Path, report: dict[str, Any]) -> str:
    file = folder / "report.json"
    file.write_text(json.dumps(report))
    return str(file)


def everything_about(report: dict[str, Any]) -> list[str]:
    """All that is ever made of a report."""
    other = versus.text([report, report], ["a", "b"], versus.check_alike([report, report], ["a", "b"]))
    return [*(as_text(report, form) for form in FORMATS), page([report]), other]


def test_a_report_comes_back_as_it_was_and_prints_the_same(tmp_path: Path) -> None:
    report = json.loads(as_text(usual(), "json"))
    found = load_report(saved(tmp_path, report))
    assert found == report
    assert as_text(found, "text") == as_text(usual(), "text")


def test_the_least_that_the_format_promises_is_enough(tmp_path: Path) -> None:
    text, *_ = everything_about(load_report(saved(tmp_path, LEAST)))
    assert "2.00x [1.80, 2.20]" in text
    assert "sampling unknown" in text


@pytest.mark.parametrize(
    ("route", "value", "said"),
    [
        (("runs", 0, "tpot_ms"), None, "runs.0.tpot_ms: None is not of type 'object'"),
        (("runs", 1, "by_category"), {"math": 3}, "runs.1.by_category.math: 3 is not of type 'object'"),
        (("comparison", 0, "tpot_speedup_ci"), [1.0], "comparison.0.tpot_speedup_ci: [1.0] is too short"),
        (("comparison", 0, "candidate"), "other", "other is compared, and no run is called so"),
        (("verdict", "text"), 7, "verdict.text: 7 is not of type 'string'"),
        (("verdict", "settings"), {"vllm": {"text": "x"}}, "verdict.settings.vllm: 'release' is a required property"),
        (("workload", "prompts"), {"math": "many"}, "workload.prompts.math: 'many' is not of type 'integer'"),
        (
            ("comparison", 0, "first_divergence"),
            {"request": 99, "token": 0, "margin": None},
            "first_divergence names no request",
        ),
    ],
)
def test_what_is_of_another_kind_is_named(
    tmp_path: Path, route: tuple[str | int, ...], value: object, said: str
) -> None:
    report = copy.deepcopy(LEAST)
    part: Any = report
    for step in route[:-1]:
        part = part[step]
    part[route[-1]] = value
    with pytest.raises(SpecctlError, match="is no report of specctl bench") as caught:
        load_report(saved(tmp_path, report))
    assert said in caught.value.message


def test_what_json_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="Infinity is no number of JSON"):
        load_report(saved(tmp_path, LEAST | {"notes": [float("inf")]}))
