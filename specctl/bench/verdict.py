"""From comparisons to one sentence: which draft to keep, up to which concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from specctl.bench.compare import DIFFERENT, Comparison


@dataclass(frozen=True)
class Verdict:
    """`keep_up_to_concurrency`: the largest tested level at which the best candidate is kept with all lower ones, or 0.

    None where no candidate was compared.
    """

    keep_up_to_concurrency: int | None
    text: str

    def as_dict(self) -> dict[str, Any]:
        """The report's form."""
        return {"keep_up_to_concurrency": self.keep_up_to_concurrency, "text": self.text}


def judge(comparisons: Sequence[Comparison], names: dict[int, str] | None = None) -> Verdict:
    """The verdict over all candidates and levels; `names` maps a request's index to what it is called in the text."""
    groups = list(_by_candidate(comparisons).values())
    measured = [group for group in groups if any(row.keep is not None for row in group)]
    if not measured:
        return Verdict(None, "Nothing was compared, so there is no verdict.")
    best = max(measured, key=lambda group: (keep_up_to(group), _gain(group)))
    level = keep_up_to(best)
    wrong = [row for row in comparisons if row.outputs == DIFFERENT]
    return Verdict(level, _wrong(wrong, names or {}) if wrong else _sentence(best, level))


def _by_candidate(comparisons: Sequence[Comparison]) -> dict[tuple[str, int | None], list[Comparison]]:
    groups: dict[tuple[str, int | None], list[Comparison]] = {}
    for row in sorted(comparisons, key=lambda row: row.concurrency):
        groups.setdefault((row.candidate, row.k), []).append(row)
    return groups


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
        first = best[0].concurrency
        return f"Keep plain decoding: no draft pays from concurrency {first} on; the nearest, {name}, has {speeds}."
    if len(best) == 1:
        return f"Keep {name} at concurrency {level}, the only level tested: TPOT is better by {_interval(best[0])}."
    if level == best[-1].concurrency:
        return f"Keep {name} at every concurrency tested, up to {level}: TPOT is better by {speeds}."
    return f"Keep {name} up to concurrency {level} and drop it above: TPOT changes by {speeds}."


def _wrong(rows: Sequence[Comparison], names: dict[int, str]) -> str:
    row = rows[0]
    where = row.first_divergence
    place = ""
    if where is not None:
        request = names.get(where.request, str(where.request))
        gap = "one output ends there" if where.margin is None else f"margin {where.margin:.3g}"
        place = f" (request {request}, token {where.token}, {gap})"
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
    lost = low > 1 and row.throughput_ratio is not None and row.throughput_ratio < 1
    return f"{row.tpot_speedup:.2f}x [{low:.2f}, {high:.2f}]" + (
        f" (but throughput falls to {row.throughput_ratio:.2f}x)" if lost else ""
    )
