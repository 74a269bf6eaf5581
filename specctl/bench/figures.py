"""Which plots a report has, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specctl.bench.formats import against_baseline
from specctl.bench.plots import Point, Series, bar_plot, line_plot, scatter_plot
from specctl.bench.results import Report
from specctl.bench.verdict import label

Choice = tuple[str, int | None]
Run = dict[str, Any]
Colours = Mapping[Choice, int]


@dataclass(frozen=True)
class Figure:
    """One plot with its title and what it means."""

    title: str
    caption: str
    svg: str


def figures(report: Report, colours: Colours) -> list[Figure]:
    """The plots for which something was measured."""
    makers = (_tpot, _throughput, _speedup, _pareto, _positions, _histogram, _categories, _contexts)
    return [figure for maker in makers if (figure := maker(report, colours)) is not None]


def _levels(report: Report) -> list[Any]:
    return list(dict.fromkeys(run["concurrency"] for run in report["runs"]))


def _by_choice(report: Report) -> dict[Choice, list[Run]]:
    found: dict[Choice, list[Run]] = {}
    for run in report["runs"]:
        found.setdefault((run["name"], run["k"]), []).append(run)
    return found


def _over_levels(
    report: Report, colours: Colours, value: Callable[[Run], tuple[float | None, list[float] | None]]
) -> list[Series]:
    """Each run's value over the levels, with its interval."""
    levels = _levels(report)
    series = []
    for choice, runs in _by_choice(report).items():
        points = []
        for run in runs:
            found, ends = value(run)
            if found is not None:
                low, high = ends or (None, None)
                note = f"{label(*choice)} at {run['concurrency']}: {found:.3g}"
                points.append(Point(levels.index(run["concurrency"]), found, low, high, note))
        if points:
            series.append(Series(label(*choice), colours[choice], tuple(points)))
    return series


def _labels(report: Report) -> list[str]:
    return ["arrivals" if level is None else str(level) for level in _levels(report)]


def _tpot(report: Report, colours: Colours) -> Figure | None:
    series = _over_levels(report, colours, lambda run: (run["tpot_ms"]["mean"], run.get("tpot_ms_ci")))
    if not series:
        return None
    plot = line_plot("TPOT against concurrency", "concurrency", "ms per output token", series, _labels(report))
    return Figure("Time per output token", "what one user waits for a token; lower is better", plot)


def _throughput(report: Report, colours: Colours) -> Figure | None:
    series = _over_levels(report, colours, lambda run: (run["output_throughput"], run.get("output_throughput_ci")))
    if not series:
        return None
    plot = line_plot("Output throughput against concurrency", "concurrency", "tokens/s", series, _labels(report))
    return Figure("Output throughput", "tokens a second of all users together; higher is better", plot)


def _speedup(report: Report, colours: Colours) -> Figure | None:
    def value(run: Run) -> tuple[float | None, list[float] | None]:
        row = against_baseline(report, run)
        return (None, None) if row is None else (row["tpot_speedup"], row["tpot_speedup_ci"])

    series = _over_levels(report, colours, value)
    if not series:
        return None
    plot = line_plot("Speed-up against concurrency", "concurrency", "TPOT speed-up", series, _labels(report), mark=1.0)
    return Figure("Speed-up over plain decoding", "paired, with the interval that decides; above 1 pays", plot)


def _pareto(report: Report, colours: Colours) -> Figure | None:
    series = []
    for choice, runs in _by_choice(report).items():
        points = [
            Point(
                1000 / run["tpot_ms"]["mean"],
                run["output_throughput"],
                note=f"{label(*choice)} at {run['concurrency']}",
                label="" if run["concurrency"] is None else str(run["concurrency"]),
            )
            for run in runs
            if run["tpot_ms"]["mean"] and run["output_throughput"]
        ]
        if points:
            series.append(Series(label(*choice), colours[choice], tuple(points)))
    if not series:
        return None
    plot = scatter_plot("Pareto front", "tokens/s for one user", "tokens/s of all", series)
    return Figure("One user against all", "speed of one user (1 / TPOT) and of all, at each concurrency", plot)


def _lowest(report: Report) -> list[Run]:
    """The runs of the lowest level, where acceptance does not depend on what shares the batch."""
    first = _levels(report)[0]
    return [run for run in report["runs"] if run["concurrency"] == first]


def _positions(report: Report, colours: Colours) -> Figure | None:
    runs = [run for run in _lowest(report) if run["acceptance_per_position"]]
    if not runs:
        return None
    series = [
        Series(
            label(run["name"], run["k"]),
            colours[(run["name"], run["k"])],
            tuple(Point(place, rate) for place, rate in enumerate(run["acceptance_per_position"])),
        )
        for run in runs
    ]
    longest = max(len(run["acceptance_per_position"]) for run in runs)
    labels = [str(place + 1) for place in range(longest)]
    plot = line_plot("Acceptance per position", "drafted token", "share of drafts", series, labels, mark=None)
    return Figure(
        "Acceptance per position", "share of drafts whose token was accepted, at the lowest concurrency", plot
    )


def _histogram(report: Report, colours: Colours) -> Figure | None:
    runs = [run for run in _lowest(report) if run["acceptance_length_histogram"]]
    if not runs:
        return None
    longest = max(len(run["acceptance_length_histogram"]) for run in runs)
    series = []
    for run in runs:
        counts = run["acceptance_length_histogram"]
        points = tuple(Point(place, count / sum(counts), note=str(count)) for place, count in enumerate(counts))
        series.append(Series(label(run["name"], run["k"]), colours[(run["name"], run["k"])], points))
    labels = [str(place) for place in range(longest)]
    plot = bar_plot("Accepted lengths", "share of drafts", labels, series, x_title="drafted tokens accepted in a step")
    return Figure("Accepted lengths", "how many drafted tokens a verify step accepts", plot)


def _categories(report: Report, colours: Colours) -> Figure | None:
    return _grouped(report, colours, "by_category", "Speed-up by category", "")


def _contexts(report: Report, colours: Colours) -> Figure | None:
    return _grouped(report, colours, "by_context", "Speed-up by prompt length", "prompt tokens")


def _grouped(report: Report, colours: Colours, key: str, title: str, x_title: str) -> Figure | None:
    rows = [(run, row) for run in _lowest(report) if (row := against_baseline(report, run)) is not None]
    names: Sequence[str] = list(dict.fromkeys(name for _, row in rows for name in row[key]))
    if len(names) < 2:
        return None
    series = []
    for run, row in rows:
        points = [
            Point(names.index(name), found["tpot_speedup"], note=f"{name}: {found['tpot_speedup']:.2f}x")
            for name, found in row[key].items()
            if found["tpot_speedup"] is not None
        ]
        series.append(Series(label(run["name"], run["k"]), colours[(run["name"], run["k"])], tuple(points)))
    plot = bar_plot(title, "TPOT speed-up", names, series, mark=1.0, x_title=x_title)
    return Figure(title, f"at concurrency {_labels(report)[0]}; above 1 pays", plot)
