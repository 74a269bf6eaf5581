"""From comparisons to what to do: which draft, which k, up to which concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from specctl.bench.compare import DROP, KEEP, Comparison
from specctl.bench.outputs import DIFFERENT

Choice = tuple[str, int | None]
"""A candidate's name and k."""


@dataclass(frozen=True)
class Level:
    """What to do at one concurrency: the best candidate there, and whether it is kept."""

    concurrency: int
    best: Comparison

    def as_dict(self) -> dict[str, Any]:
        """The report's form."""
        row = self.best
        return {
            "concurrency": self.concurrency,
            "decision": row.decision,
            "candidate": row.candidate,
            "k": row.k,
            "tpot_speedup": row.tpot_speedup,
            "tpot_speedup_ci": row.tpot_speedup_ci,
            "throughput_ratio": row.throughput_ratio,
        }


@dataclass(frozen=True)
class Verdict:
    """`keep_up_to_concurrency`: the largest tested level at which the best candidate is kept with all lower ones, or 0.

    None where no candidate was compared. `levels`: the best candidate of each level. `plan`: the kept candidate and
    its best k at each level up to there.
    """

    keep_up_to_concurrency: int | None
    text: str
    levels: tuple[Level, ...] = ()
    candidate: Choice | None = None
    plan: dict[int, int | None] = field(default_factory=dict)
    highest: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The report's form."""
        return {
            "keep_up_to_concurrency": self.keep_up_to_concurrency,
            "text": self.text,
            "candidate": None if self.candidate is None else self.candidate[0],
            "k": None if self.candidate is None else self.candidate[1],
            "best_k": {str(level): k for level, k in self.plan.items()},
            "by_concurrency": [level.as_dict() for level in self.levels],
        }


def judge(comparisons: Sequence[Comparison], names: dict[int, str] | None = None) -> Verdict:
    """The verdict over all candidates and levels; `names` maps a request's index to what it is called in the text."""
    groups = list(_by_candidate(comparisons).values())
    measured = [group for group in groups if any(row.keep is not None for row in group)]
    if not measured:
        return Verdict(None, "Nothing was compared, so there is no verdict.")
    best = max(measured, key=lambda group: (keep_up_to(group), _gain(group)))
    level = keep_up_to(best)
    levels = tuple(_levels(comparisons))
    wrong = [row for row in comparisons if row.outputs.status == DIFFERENT]
    if wrong:
        return Verdict(level, _wrong(wrong, names or {}), levels)
    plan = _plan(measured, best, level)
    text = _sentence(best, level) + _better_k(best[0], plan)
    return Verdict(level, text, levels, (best[0].candidate, best[0].k) if level else None, plan, best[-1].concurrency)


def _by_candidate(comparisons: Sequence[Comparison]) -> dict[Choice, list[Comparison]]:
    groups: dict[Choice, list[Comparison]] = {}
    for row in sorted(comparisons, key=lambda row: row.concurrency):
        groups.setdefault((row.candidate, row.k), []).append(row)
    return groups


def _levels(comparisons: Sequence[Comparison]) -> list[Level]:
    """At each level the kept candidate with the largest speed-up, else the one with the largest speed-up at all."""
    found: dict[int, Comparison] = {}
    for row in sorted(comparisons, key=lambda row: row.concurrency):
        known = found.get(row.concurrency)
        if row.tpot_speedup is not None and (known is None or _rank(row) > _rank(known)):
            found[row.concurrency] = row
    return [Level(level, row) for level, row in found.items()]


def _rank(row: Comparison) -> tuple[bool, float]:
    return bool(row.keep), row.tpot_speedup or 0.0


def _plan(groups: Sequence[Sequence[Comparison]], best: Sequence[Comparison], level: int) -> dict[int, int | None]:
    """The k of the best candidate's method with which it is fastest, at each level up to `level`."""
    method = best[0].candidate
    rows = [row for group in groups for row in group if row.candidate == method and row.concurrency <= level]
    fastest: dict[int, Comparison] = {}
    for row in sorted(rows, key=lambda row: row.concurrency):
        if row.keep and (row.concurrency not in fastest or _rank(row) > _rank(fastest[row.concurrency])):
            fastest[row.concurrency] = row
    return {concurrency: row.k for concurrency, row in fastest.items()}


def _better_k(row: Comparison, plan: dict[int, int | None]) -> str:
    if len(set(plan.values())) < 2 and set(plan.values()) <= {row.k}:
        return ""
    return " Best k: " + ", ".join(f"{k} at {level}" for level, k in plan.items()) + "."


def keep_up_to(group: Sequence[Comparison]) -> int:
    """The largest level of one candidate (levels ascending) that is kept with all lower ones, else 0."""
    level = 0
    for row in group:
        if not row.keep:
            break
        level = row.concurrency
    return level


def _gain(group: Sequence[Comparison]) -> float:
    """Geometric mean of the speed-ups over the levels."""
    found = [row.tpot_speedup for row in group if row.tpot_speedup is not None]
    return prod(found) ** (1 / len(found)) if found else 0.0


def _sentence(best: Sequence[Comparison], level: int) -> str:
    name = label(best[0].candidate, best[0].k)
    speeds = ", ".join(f"{_interval(row)} at {row.concurrency}" for row in best)
    if level == 0:
        return _no_draft(best, name, speeds)
    if len(best) == 1:
        return f"Keep {name} at concurrency {level}, the only level tested: TPOT is better by {_interval(best[0])}."
    if level == best[-1].concurrency:
        return f"Keep {name} at every concurrency tested, up to {level}: TPOT is better by {speeds}."
    lost = any(row.decision == DROP for row in best)
    above = "drop it above" if lost else "not above, where its gain is within noise"
    return f"Keep {name} up to concurrency {level} and {above}: TPOT changes by {speeds}."


def _no_draft(best: Sequence[Comparison], name: str, speeds: str) -> str:
    first = best[0].concurrency
    later = [row.concurrency for row in best if row.decision == KEEP]
    if later:
        levels = ", ".join(map(str, later))
        return f"Keep plain decoding at concurrency {first}; {name} pays at {levels} only: TPOT changes by {speeds}."
    why = "is within noise" if best[0].decision != DROP else "does not pay"
    return f"Keep plain decoding: no draft pays from concurrency {first} on; the nearest, {name}, {why}: {speeds}."


def _wrong(rows: Sequence[Comparison], names: dict[int, str]) -> str:
    row = rows[0]
    where = row.outputs.first
    place = ""
    if where is not None:
        request = names.get(where.request, str(where.request))
        gap = "no margin known" if where.margin is None else f"margin {where.margin:.3g}"
        place = f" (request {request}, {where.unit} {where.token}, {gap})"
    more = f", and {len(rows) - 1} more comparison(s) differ" if len(rows) > 1 else ""
    who = f"{label(row.candidate, row.k)} changes the output at concurrency {row.concurrency}"
    return f"Do not use it: {who}{place}{more}."


def label(name: str, k: int | None) -> str:
    """How a run is called in text."""
    return name if k is None else f"{name} (k={k})"


def _interval(row: Comparison) -> str:
    if row.tpot_speedup is None:
        return "not measured"
    if row.tpot_speedup_ci is None:
        return f"{row.tpot_speedup:.2f}x"
    low, high = row.tpot_speedup_ci
    lost = row.decision == DROP and low > 1
    return f"{row.tpot_speedup:.2f}x [{low:.2f}, {high:.2f}]" + (
        f" (but throughput falls to {row.throughput_ratio:.2f}x)" if lost else ""
    )
