"""The report for people: tables and sentences made from the JSON shape alone, so that a saved file prints the same.

Tables are lists of text first; `rich` draws them on a terminal, `plain` aligns them anywhere else. Both stay within 100
columns for the usual four categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from specctl.bench.results import Report
from specctl.bench.verdict import label

NOTHING = "-"
CATEGORIES_A_TABLE = 4
WIDTH = 100


@dataclass(frozen=True)
class Table:
    """A titled table: the first `left` columns are words (left-aligned), the rest figures; `marks` colour the rows."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...]
    left: int = 1


def tables(report: Report) -> list[Table]:
    """The main table, then acceptance length and speed-up by category."""
    return [_main_table(report), *_category_tables(report)]


def _main_table(report: Report) -> Table:
    header = ("method", "k", "conc", "accept", "length", "TPOT ms", "TTFT ms", "tok/s", "speed-up [95 %]", "outputs")
    rows, marks = [], []
    for run in report["runs"]:
        against = _comparison(report, run)
        rows.append((*_who(run), *_figures(run), *_against(run, against)))
        marks.append(_mark(against))
    return Table("", header, tuple(rows), tuple(marks))


def _who(run: dict[str, Any]) -> tuple[str, str, str]:
    return run["name"], _number(run["k"], 0), str(run["concurrency"])


def _figures(run: dict[str, Any]) -> tuple[str, ...]:
    rate = run["acceptance_rate"]
    return (
        NOTHING if rate is None else f"{100 * rate:.1f} %",
        _number(run["mean_acceptance_length"], 2),
        _number(run["tpot_ms"]["mean"], 2),
        _number(run["ttft_ms"]["mean"], 1),
        _number(run["output_throughput"], 1),
    )


def _against(run: dict[str, Any], against: dict[str, Any] | None) -> tuple[str, str]:
    if against is None:
        return NOTHING, NOTHING if run["name"] != "baseline" else "reference"
    return _speedup(against), against["outputs"]


def _speedup(against: dict[str, Any]) -> str:
    if against["tpot_speedup"] is None:
        return NOTHING
    ends = against["tpot_speedup_ci"]
    return f"{against['tpot_speedup']:.2f}x" + ("" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]")


def _mark(against: dict[str, Any] | None) -> str:
    if against is None:
        return ""
    if against["outputs"] == "different":
        return "red"
    return "green" if against["keep"] else ""


def _comparison(report: Report, run: dict[str, Any]) -> dict[str, Any] | None:
    key = (run["name"], run["k"], run["concurrency"])
    for row in report["comparison"]:
        if (row["candidate"], row["k"], row["concurrency"]) == key:
            found: dict[str, Any] = row
            return found
    return None


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _category_tables(report: Report) -> list[Table]:
    """Acceptance length and speed-up of each candidate by category, four categories a table."""
    names = list(dict.fromkeys(name for run in report["runs"] for name in run["by_category"]))
    runs = [(run, against) for run in report["runs"] if (against := _comparison(report, run)) is not None]
    if not runs or len(names) < 2:
        return []
    found = []
    for start in range(0, len(names), CATEGORIES_A_TABLE):
        part = names[start : start + CATEGORIES_A_TABLE]
        rows = tuple((*_who(run), *(_cell(run, against, name) for name in part)) for run, against in runs)
        marks = ("",) * len(rows)
        found.append(Table("acceptance length and speed-up by category", ("method", "k", "conc", *part), rows, marks))
    return found


def _cell(run: dict[str, Any], against: dict[str, Any], category: str) -> str:
    length = _number(run["by_category"].get(category, {}).get("mean_acceptance_length"), 2)
    speedup = against["by_category"].get(category, {}).get("tpot_speedup")
    return f"{length}  {NOTHING if speedup is None else f'{speedup:.2f}x'}"


def heading(report: Report) -> list[str]:
    """Two lines: what ran where, and on which prompts."""
    env, work = report["environment"], report["workload"]
    threads = "" if env.get("threads") is None else f", {_count(env['threads'], 'thread')}"
    where = f"{work['target']}, {env.get('dtype')} on {env.get('device')}{threads}"
    made_by = f"specctl {env.get('specctl')}, torch {env.get('torch')}"
    total = sum(work["prompts"].values())
    prompts = ", ".join(f"{count} {name}" for name, count in work["prompts"].items())
    how = "greedy" if work["temperature"] == 0 else f"temperature {work['temperature']:g}"
    length = f"at most {work['output_len']} new tokens"
    repeats = _count(work["repeats"], "repeat")
    return [f"{where} ({made_by})", f"{total} prompts ({prompts}), {length}, {how}, {repeats}"]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def notes(report: Report) -> list[str]:
    """What must be said beside the tables: interruption, failures, divergences, how the answers ended."""
    found = []
    work = report["workload"]
    if work.get("interrupted"):
        found.append("Interrupted: these are the blocks that were complete.")
    elif work["repeats_measured"] < work["repeats"]:
        done = f"{work['repeats_measured']} of {work['repeats']}"
        found.append(f"Only {done} repeats fitted into the time; --repeats {work['repeats']} runs them all.")
    found.extend(_failures(report))
    found.extend(_divergence(row, work) for row in report["comparison"] if row["first_divergence"] is not None)
    found.extend(_peers(report))
    if work.get("ended_by_eos_share") is not None:
        found.append(f"{100 * work['ended_by_eos_share']:.0f} % of the baseline's answers ended by EOS.")
    return found


def _failures(report: Report) -> Iterable[str]:
    for run in report["runs"]:
        if run["failed"]:
            yield f"{run['name']} at concurrency {run['concurrency']}: {_count(run['failed'], 'request')} failed."


def _divergence(row: dict[str, Any], work: dict[str, Any]) -> str:
    where = row["first_divergence"]
    name = work["request_ids"][where["request"]]
    gap = "one output ends there" if where["margin"] is None else f"logit margin {where['margin']:.2g}"
    who = f"{label(row['candidate'], row['k'])} at concurrency {row['concurrency']}"
    return f"{who}, {row['outputs']}: request {name}, token {where['token']}, {gap}."


def _peers(report: Report) -> Iterable[str]:
    """How the bundled runtime's plain decoding stands against another runtime's plain decoding."""
    for row in report["comparison"]:
        run = next(run for run in report["runs"] if run["name"] == row["candidate"] and run["k"] == row["k"])
        if run["spec"] is None and run["k"] is None and row["tpot_speedup"]:
            yield f"Plain decoding here is {1 / row['tpot_speedup']:.2f}x as fast as {row['candidate']} (TPOT)."


def plain(report: Report) -> str:
    """The report as aligned text; sentences are broken at 100 columns."""
    parts = [_wrapped(heading(report)), *(aligned(table) for table in tables(report))]
    return "\n\n".join([*parts, _wrapped([*notes(report), report["verdict"]["text"]])]) + "\n"


def _wrapped(sentences: Iterable[str]) -> str:
    return "\n".join(fill(sentence, WIDTH, break_long_words=False, break_on_hyphens=False) for sentence in sentences)


def aligned(table: Table) -> str:
    """One table as text."""
    return "\n".join(_lines(table))


def _lines(table: Table) -> list[str]:
    """Title (where there is one), header, rule and rows; columns two blanks apart, or one where that is too wide."""
    lines = [table.header, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else " "

    def laid_out(line: Sequence[str]) -> str:
        sides = [str.ljust] * table.left + [str.rjust] * (len(widths) - table.left)
        cells = [side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)]
        return gap.join(cells).rstrip()

    title = [table.title] if table.title else []
    return [*title, laid_out(table.header), gap.join("-" * width for width in widths), *map(laid_out, table.rows)]


def show(report: Report) -> None:
    """Print the report: coloured by rich on a terminal, bare elsewhere."""
    import sys

    if not sys.stdout.isatty():
        sys.stdout.write(plain(report))
        return
    from rich.console import Console

    console = Console(highlight=False)

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, soft_wrap=True)

    say(_wrapped(heading(report)))
    for table in tables(report):
        lines = _lines(table)
        styles = ["bold"] * (len(lines) - len(table.rows) - 1) + ["dim", *table.marks]
        say("")
        for line, style in zip(lines, styles, strict=True):
            say(line, style)
    say("")
    say(_wrapped(notes(report)))
    say(_wrapped([report["verdict"]["text"]]), "bold")
