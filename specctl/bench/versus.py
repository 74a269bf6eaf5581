"""Saved reports side by side: the same run in each, and what changed by more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specctl.bench.compare import MIN_EFFECT
from specctl.bench.formats import against_baseline
from specctl.bench.report import Table, aligned
from specctl.bench.results import Report
from specctl.bench.saved import other_place, unlike
from specctl.bench.verdict import label
from specctl.errors import SpecctlError

# By name: where it lies in a run, and whether more of it is better.
MEASURES = (
    ("mean acceptance length", ("mean_acceptance_length",), True),
    ("TPOT", ("tpot_ms", "mean"), False),
    ("output throughput", ("output_throughput",), True),
    ("speed-up", ("tpot_speedup",), True),
)


@dataclass(frozen=True)
class Change:
    """One measure of one run, in the first report and in another; `sure`: intervals, where there are any, are apart."""

    run: str
    concurrency: int | None
    measure: str
    before: float
    after: float
    better: bool
    sure: bool

    def as_dict(self) -> dict[str, Any]:
        """JSON types."""
        return self.__dict__ | {"ratio": self.after / self.before if self.before else None}

    @property
    def sentence(self) -> str:
        """For people."""
        where = "" if self.concurrency is None else f" at concurrency {self.concurrency}"
        word = "better" if self.better else "worse"
        return f"{self.run}{where}: {self.measure} is {word}, {self.before:.3g} -> {self.after:.3g}"


def check_alike(reports: Sequence[Report], names: Sequence[str]) -> list[str]:
    """Where the reports were measured differently, as notes. Raises `SpecctlError` for reports of other workloads."""
    notes = []
    for report, name in zip(reports[1:], names[1:], strict=True):
        differs = unlike(reports[0], report)
        if differs:
            shown = ", ".join(
                f"{each} {_short(reports[0]['workload'].get(each))} and {_short(report['workload'].get(each))}"
                for each in differs
            )
            raise SpecctlError(
                f"{names[0]} and {name} measured other work: {shown}",
                help="compare runs of the same prompts and sampling",
            )
        places = other_place(reports[0], report)
        if places:
            notes.append(f"{names[0]} and {name} ran elsewhere ({', '.join(places)}): compare speed-ups, not times")
        if reports[0]["workload"].get("target") != report["workload"].get("target"):
            notes.append(f"{names[0]} and {name} have other targets")
    return notes


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return f"{sum(value.values())} ({', '.join(value)})"
    return str(value)


def changes(first: Report, other: Report) -> list[Change]:
    """Every measure of every run that both have and that differs by 2 % or more."""
    found = []
    for before, after, where in _common(first, other):
        for name, route, more in MEASURES:
            old, new = _at(before, route), _at(after, route)
            if old is None or new is None or old == 0 or abs(new / old - 1) < MIN_EFFECT:
                continue
            sure = name not in ("speed-up", "TPOT") or _apart(before, after, name)
            found.append(Change(where, before["concurrency"], name, old, new, (new > old) == more, sure))
    return found


def _common(first: Report, other: Report) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    theirs = {_key(run): run | _compared(other, run) for run in other["runs"]}
    return [
        (run | _compared(first, run), theirs[_key(run)], label(run["name"], run["k"]))
        for run in first["runs"]
        if _key(run) in theirs
    ]


def _compared(report: Report, run: dict[str, Any]) -> dict[str, Any]:
    row = against_baseline(report, run) or {}
    return {"tpot_speedup": row.get("tpot_speedup"), "tpot_speedup_ci": row.get("tpot_speedup_ci")}


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["name"], run["k"], run["concurrency"]


def _at(run: dict[str, Any], route: Sequence[str]) -> float | None:
    value: Any = run
    for name in route:
        value = None if value is None else value.get(name)
    return None if value is None else float(value)


def _apart(before: dict[str, Any], after: dict[str, Any], name: str) -> bool:
    key = "tpot_speedup_ci" if name == "speed-up" else "tpot_ms_ci"
    one, other = before.get(key), after.get(key)
    return one is None or other is None or one[1] < other[0] or other[1] < one[0]


def tables(reports: Sequence[Report]) -> Table:
    """One row a run that any report has; each measure once for each report."""
    keys = list(dict.fromkeys(_key(run) for report in reports for run in report["runs"]))
    found = [{_key(run): run | _compared(report, run) for run in report["runs"]} for report in reports]
    letters = [chr(ord("A") + place % 26) for place in range(len(reports))]
    digits = {"mean acceptance length": 2, "TPOT": 2, "output throughput": 1, "speed-up": 2}
    short = {"mean acceptance length": "length", "output throughput": "tok/s", "TPOT": "TPOT ms"}
    header = ["method", "k", "conc"]
    header += [f"{short.get(name, name)} {letter}" for name, _, _ in MEASURES for letter in letters]
    rows = []
    for key in keys:
        row = [key[0], "-" if key[1] is None else str(key[1]), "-" if key[2] is None else str(key[2])]
        for name, route, _ in MEASURES:
            values = [None if key not in runs else _at(runs[key], route) for runs in found]
            row += ["-" if value is None else f"{value:.{digits[name]}f}" for value in values]
        rows.append(tuple(row))
    return Table("", tuple(header), tuple(rows), ("",) * len(rows))


def text(reports: Sequence[Report], names: Sequence[str], notes: Sequence[str]) -> str:
    """The table and what changed, for people."""
    letters = [f"{chr(ord('A') + place % 26)}  {name}" for place, name in enumerate(names)]
    parts = ["\n".join(letters), aligned(tables(reports), 160)]
    parts += ["\n".join(f"note: {note}" for note in notes)] if notes else []
    for report, name in zip(reports[1:], names[1:], strict=True):
        found = changes(reports[0], report)
        sure = [f"  {each.sentence}" for each in found if each.sure]
        unsure = sum(not each.sure for each in found)
        more = [f"  {unsure} more within noise (their intervals overlap)"] if unsure else []
        parts.append("\n".join([f"{name} against {names[0]}:", *(sure + more or ["  no change of 2 % or more"])]))
        verdicts = reports[0]["verdict"]["text"], report["verdict"]["text"]
        if verdicts[0] != verdicts[1]:
            parts.append(f"verdict A: {verdicts[0]}\nverdict {letters[names.index(name)][0]}: {verdicts[1]}")
    return "\n\n".join(parts) + "\n"
