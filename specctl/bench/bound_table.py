"""The bound beside the measured speed-up, and where drafts go wrong: made from the JSON shape alone.

`by place`: accepted at each place, of the drafts that got there. `E`: acceptance length over all steps, `c`: cost of a
drafted token, `v`: cost of verifying (see `specctl.bench.bound`).
"""

from __future__ import annotations

from typing import Any

TITLE = "accepted at each place; bound = E / (k c + v), costs in steps of plain decoding"
SPARE = ("conc", "E", "by place")
HEADER = ("method", "k", "conc", "by place", "E", "c", "v", "bound", "speed-up", "of bound")
PLACES = 7
NOTHING = "-"


def bound_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a drafted run that was compared with plain decoding."""
    found = {(row["candidate"], row["k"], row["concurrency"]): row for row in report["comparison"]}
    rows = []
    for run in report["runs"]:
        against = found.get((run["name"], run["k"], run["concurrency"]))
        if against is not None and run.get("conditional_acceptance_per_position"):
            rows.append(_row(run, against))
    return rows


def _row(run: dict[str, Any], against: dict[str, Any]) -> tuple[str, ...]:
    share = against.get("share_of_bound")
    return (
        run["name"],
        str(run["k"]),
        "-" if run["concurrency"] is None else str(run["concurrency"]),
        places(run["conditional_acceptance_per_position"]),
        _number(run["mean_acceptance_length_all_steps"]),
        _number(against.get("draft_cost")),
        _number(against.get("verify_cost")),
        _times(against.get("bound")),
        _times(against["tpot_speedup"]),
        NOTHING if share is None else f"{100 * share:.0f} %",
    )


def places(conditional: list[float | None]) -> str:
    """The first places; a place that no draft reached ends them."""
    reached = [value for value in conditional[:PLACES] if value is not None]
    return " ".join(f"{value:.2f}"[1:] if value < 1 else "1.0" for value in reached)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}x"
