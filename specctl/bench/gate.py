"""Thresholds for a pipeline: what must hold of a report, and what got worse since an older one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from specctl.bench.compare import MIN_EFFECT
from specctl.bench.results import Report
from specctl.bench.saved import load_report, unlike
from specctl.bench.verdict import label
from specctl.errors import UsageError


@dataclass(frozen=True)
class Gate:
    """What must hold; None: not asked for. Without any threshold a draft must be kept at the lowest level."""

    min_acceptance_length: float | None = None
    min_speedup: float | None = None
    before: Report | None = None

    @property
    def bare(self) -> bool:
        """Whether no threshold was given."""
        return (self.min_acceptance_length, self.min_speedup, self.before) == (None, None, None)


def read_gate(wanted: bool, length: float | None, speedup: float | None, baseline_json: str | None) -> Gate | None:
    """The gate of a command line; a threshold asks for it, too. Raises `UsageError` for thresholds that are none."""
    if length is not None and not 1 <= length < float("inf"):
        raise UsageError(f"--min-acceptance-length is {length:g}; it must be 1 or above (the bonus token counts)")
    if speedup is not None and not 0 < speedup < float("inf"):
        raise UsageError(f"--min-speedup is {speedup:g}; it must be above 0")
    before = None if baseline_json is None else load_report(baseline_json)
    gate = Gate(length, speedup, before)
    return gate if wanted or not gate.bare else None


def check(report: Report, gate: Gate) -> list[str]:
    """What does not hold, one sentence each."""
    return [*_bare(report, gate), *_length(report, gate), *_speedup(report, gate), *_regressions(report, gate)]


def _bare(report: Report, gate: Gate) -> Iterator[str]:
    if gate.bare and not report["verdict"]["keep_up_to_concurrency"]:
        yield f"no draft is kept at the lowest concurrency: {report['verdict']['text']}"


def _candidates(report: Report) -> list[dict[str, Any]]:
    return [run for run in report["runs"] if run["name"] != "baseline" and (run["spec"] or _served(report))]


def _served(report: Report) -> bool:
    return bool(report["environment"].get("servers"))


def _length(report: Report, gate: Gate) -> Iterator[str]:
    if gate.min_acceptance_length is None:
        return
    for run in _candidates(report):
        found, who = run["mean_acceptance_length"], _who(run)
        if found is None:
            yield f"{who}: mean acceptance length unknown, {gate.min_acceptance_length:g} is wanted"
        elif found < gate.min_acceptance_length:
            yield f"{who}: mean acceptance length {found:.3f} is below {gate.min_acceptance_length:g}"


def _speedup(report: Report, gate: Gate) -> Iterator[str]:
    """At every level the best candidate must reach the speed-up."""
    if gate.min_speedup is None:
        return
    rows = [row for row in report["comparison"] if not _is_peer(report, row)]
    if not rows:
        yield f"no speed-up was measured, {gate.min_speedup:g} is wanted"
    for level in sorted({row["concurrency"] for row in rows}):
        found = [row["tpot_speedup"] for row in rows if row["concurrency"] == level and row["tpot_speedup"] is not None]
        if not found or max(found) < gate.min_speedup:
            best = f"the best speed-up is {max(found):.3f}" if found else "no speed-up was measured"
            yield f"concurrency {level}: {best}, {gate.min_speedup:g} is wanted"


def _is_peer(report: Report, row: dict[str, Any]) -> bool:
    run = next(run for run in report["runs"] if (run["name"], run["k"]) == (row["candidate"], row["k"]))
    return run["spec"] is None and not _served(report)


def _regressions(report: Report, gate: Gate) -> Iterator[str]:
    """What got worse than before by 2 % or more, the speed-up outside of both intervals."""
    if gate.before is None:
        return
    differs = unlike(gate.before, report)
    if differs:
        yield f"the older report is of another workload ({', '.join(differs)}), so nothing can be compared"
        return
    now = {_key(run): run for run in _candidates(report)}
    for old in _candidates(gate.before):
        new = now.get(_key(old))
        if new is None:
            yield f"{_who(old)}: measured before, missing now"
            continue
        before, after = old["mean_acceptance_length"], new["mean_acceptance_length"]
        if before is not None and after is None:
            yield f"{_who(new)}: mean acceptance length unknown, it was {before:.3f}"
        elif before is not None and after < before * (1 - MIN_EFFECT):
            yield f"{_who(new)}: mean acceptance length fell from {before:.3f} to {after:.3f}"
    yield from _slower(gate.before, report)


def _slower(before: Report, report: Report) -> Iterator[str]:
    now = {(row["candidate"], row["k"], row["concurrency"]): row for row in report["comparison"]}
    for old in before["comparison"]:
        new = now.get((old["candidate"], old["k"], old["concurrency"]))
        if new is None or old["tpot_speedup"] is None or new["tpot_speedup"] is None:
            continue
        ends, ends_before = new["tpot_speedup_ci"], old["tpot_speedup_ci"]
        apart = ends is None or ends_before is None or ends[1] < ends_before[0]
        if apart and new["tpot_speedup"] < old["tpot_speedup"] * (1 - MIN_EFFECT):
            who = f"{label(new['candidate'], new['k'])} at concurrency {new['concurrency']}"
            yield f"{who}: the speed-up fell from {old['tpot_speedup']:.3f} to {new['tpot_speedup']:.3f}"


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["name"], run["k"], run["concurrency"]


def _who(run: dict[str, Any]) -> str:
    return f"{label(run['name'], run['k'])} at concurrency {run['concurrency']}"
