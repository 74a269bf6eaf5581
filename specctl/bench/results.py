"""The report of a run as JSON: the shape of `bench --output-json`, format version 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from specctl.bench.candidates import BASELINE
from specctl.bench.compare import Comparison, TieRule, compare
from specctl.bench.load import Runner
from specctl.bench.metrics import ended_by, finished, repetition, run_figures
from specctl.bench.session import Measured, Schedule
from specctl.bench.verdict import judge
from specctl.bench.workloads import BUNDLED_PROMPTS, Workload

FORMAT_VERSION = 1
Report = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What was asked for: the target's name and EOS tokens, the schedule, the prompts, the runners (baseline first)."""

    target: str
    eos_token_ids: frozenset[int]
    schedule: Schedule
    workload: Workload
    runners: Sequence[Runner]


def build_report(setup: Setup, measured: Measured, environment: Mapping[str, Any], ties: TieRule | None) -> Report:
    """The whole report. `ties` None: outputs were not to be checked."""
    if measured.interrupted:
        measured.trim()
    comparisons = compare_all(setup, measured, ties)
    drafts = {runner.name for runner in setup.runners if runner.spec is not None}
    names = {index: prompt.id for index, prompt in enumerate(setup.workload.prompts)}
    judged = [row for row in comparisons if row.candidate in drafts]
    return {
        "format_version": FORMAT_VERSION,
        "environment": dict(environment),
        "workload": describe_workload(setup, measured),
        "runs": [_run(setup, measured, place, level) for level, place in _cells(setup)],
        "comparison": [row.as_dict() for row in comparisons],
        "verdict": judge(judged, names).as_dict(),
    }


def _cells(setup: Setup) -> list[tuple[int, int]]:
    """(concurrency, place of the runner) of everything that was to be measured."""
    return [
        (level, place)
        for level in setup.schedule.concurrency
        for place, runner in enumerate(setup.runners)
        if runner.max_concurrency is None or level <= runner.max_concurrency
    ]


def _run(setup: Setup, measured: Measured, place: int, level: int) -> dict[str, Any]:
    runner = setup.runners[place]
    return {
        "name": runner.name,
        "k": runner.k,
        "spec": None if runner.spec is None else runner.spec.as_dict(),
        "concurrency": level,
        **run_figures(measured.of(place, level)),
    }


def compare_all(setup: Setup, measured: Measured, ties: TieRule | None) -> list[Comparison]:
    """Every runner but the first against the first, at every level that both ran."""
    found = []
    for level, place in _cells(setup):
        runner = setup.runners[place]
        blocks = (measured.of(0, level), measured.of(place, level))
        if place == 0 or not blocks[1]:
            continue
        rule = ties if _lossless(runner) and setup.schedule.sampling.greedy else None
        found.append(compare((BASELINE, runner.name), runner.k, level, blocks, setup.schedule.seed, rule))
    return found


def _lossless(runner: Runner) -> bool:
    return runner.spec is None or not runner.spec.acceptance.lossy


def describe_workload(setup: Setup, measured: Measured) -> dict[str, Any]:
    """What was sent, and how the baseline's answers look: ended by EOS, repeating themselves."""
    schedule, prompts = setup.schedule, setup.workload.prompts
    answers = finished(block for level in schedule.concurrency for block in measured.of(0, level))
    lengths = [len(prompt.token_ids) for prompt in prompts]
    source = setup.workload.source
    return {
        "target": setup.target,
        "prompts": dict(Counter(prompt.category for prompt in prompts)),
        "prompts_file": None if source == BUNDLED_PROMPTS else source,
        "request_ids": [prompt.id for prompt in prompts],
        "prompt_tokens": {"min": min(lengths), "mean": fmean(lengths), "max": max(lengths)},
        "repeats": schedule.repeats,
        "repeats_measured": measured.repeats,
        "warmup": schedule.warmup,
        "output_len": schedule.sampling.max_tokens,
        "temperature": schedule.sampling.temperature,
        "top_p": schedule.sampling.top_p,
        "top_k": schedule.sampling.top_k,
        "min_p": schedule.sampling.min_p,
        "seed": schedule.seed,
        "ended_by_eos_share": ended_by(answers, setup.eos_token_ids),
        "repeated_4gram_share": repetition(answers),
        "interrupted": measured.interrupted,
    }


def differing(report: Report) -> list[dict[str, Any]]:
    """The comparisons whose outputs differ for more than a near-tie: they fail the run."""
    return [row for row in report["comparison"] if row["outputs"] == "different"]


def num_failed(report: Report) -> int:
    """Requests that failed, over all runs."""
    return sum(run["failed"] for run in report["runs"])
