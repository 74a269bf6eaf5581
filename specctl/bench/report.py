"""The report for people: tables and sentences made from the JSON shape alone, so that a saved file prints the same.

Tables are lists of text first; `rich` colours them on a terminal. They stay within 100 columns for the usual four
categories; on a narrower terminal columns that can be spared go first, down to 60 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

from specctl.bench.bound_table import HEADER, SPARE, TITLE, bound_rows
from specctl.bench.formats import against_baseline
from specctl.bench.remarks import NOTHING, count, notes, number, who
from specctl.bench.results import Report

WIDTH, MIDDLE, NARROW = 100, 80, 60
MAX_FAILURES = 5


@dataclass(frozen=True)
class Table:
    """A titled table: the first `left` columns are words (left-aligned), the rest figures; `marks` colour the rows.

    `spare`: columns that a narrow terminal does without, the first of them first.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marks: tuple[str, ...]
    left: int = 1
    spare: tuple[str, ...] = ()


def tables(report: Report, width: int = WIDTH) -> list[Table]:
    """The main table, what a draft costs, how fast it could be, then figures by category and by context length."""
    found = [main_table(report), *_cost_table(report), *_bound_table(report)]
    a_table = 4 if width >= WIDTH else 3 if width >= MIDDLE else 2
    return found + [table for kind in _KINDS for table in _split_tables(report, kind, a_table)]


def _bound_table(report: Report) -> list[Table]:
    rows = tuple(bound_rows(report))
    return [Table(TITLE, HEADER, rows, ("",) * len(rows), spare=SPARE)] if rows else []


def main_table(report: Report) -> Table:
    """One row a run."""
    header = ("method", "k", "conc", "accept", "length", "TPOT ms", "TTFT ms", "tok/s", "speed-up [95 %]", "outputs")
    rows, marks = [], []
    for run in report["runs"]:
        against = against_baseline(report, run)
        rows.append((*who(run), *_figures(run), *_against(run, against)))
        marks.append(_mark(against))
    return Table("", header, tuple(rows), tuple(marks), spare=("TTFT ms", "accept", "tok/s", "outputs", "length"))


def _figures(run: dict[str, Any]) -> tuple[str, ...]:
    rate = run["acceptance_rate"]
    return (
        NOTHING if rate is None else f"{100 * rate:.1f} %" + (" !" if run.get("alarm") else ""),
        number(run["mean_acceptance_length"], 2),
        number(run["tpot_ms"]["mean"], 2),
        number(run["ttft_ms"]["mean"], 1),
        number(run["output_throughput"], 1),
    )


def _against(run: dict[str, Any], against: dict[str, Any] | None) -> tuple[str, str]:
    if against is None:
        return NOTHING, NOTHING if run["name"] != "baseline" else "reference"
    return _speedup(against), "lossy" if run.get("lossless") is False else against["outputs"]


def _cost_table(report: Report) -> list[Table]:
    """Measured acceptance length beside the one from which the draft pays, and what an accepted token costs."""
    header = (
        "where it pays",
        "k",
        "conc",
        "length",
        "break-even",
        "ms/accepted",
        "plain ms",
        "drafting",
        "goodput",
        "decision",
    )
    rows, marks = [], []
    for run in report["runs"]:
        against = against_baseline(report, run)
        if against is None or against["break_even_acceptance_length"] is None:
            continue
        length = run["mean_acceptance_length_all_steps"] or run["mean_acceptance_length"]
        figures = (
            number(length, 2),
            number(against["break_even_acceptance_length"], 2),
            number(against["cost_per_accepted_token_ms"], 2),
            number(against["baseline_tpot_ms"], 2),
            _percent(run["draft_time_share"]),
            NOTHING if run["request_goodput"] is None else f"{run['request_goodput']:.2f}/s",
        )
        rows.append((*who(run), *figures, against["decision"] or NOTHING))
        marks.append(_mark(against))
    table = Table("", header, tuple(rows), tuple(marks), spare=("goodput", "ms/accepted", "plain ms", "drafting"))
    empty = [name for name in ("goodput", "drafting") if all(cell == NOTHING for cell in _column(table, name))]
    return [_without(table, *empty)] if rows else []


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f} %"


def _column(table: Table, name: str) -> list[str]:
    place = table.header.index(name)
    return [row[place] for row in table.rows]


def _without(table: Table, *names: str) -> Table:
    kept = [place for place, name in enumerate(table.header) if name not in names]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, header=tuple(table.header[place] for place in kept), rows=rows)


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


def _split_tables(report: Report, kind: str, a_table: int) -> list[Table]:
    """Acceptance length and speed-up of each candidate by `category` or `context`, a few of them a table."""
    key = f"by_{kind}"
    names = list(dict.fromkeys(name for run in report["runs"] for name in run[key]))
    runs = [(run, against) for run in report["runs"] if (against := against_baseline(report, run)) is not None]
    if not runs or len(names) < 2:
        return []
    found = []
    title = f"acceptance length and speed-up by {_KINDS[kind]}"
    for start in range(0, len(names), a_table):
        part = names[start : start + a_table]
        rows = tuple((*who(run), *(_cell(run[key], against[key], name) for name in part)) for run, against in runs)
        marks = ("",) * len(rows)
        found.append(Table(title, ("method", "k", "conc", *part), rows, marks))
    return found


_KINDS = {"category": "category", "context": "prompt tokens", "turn": "turn of the conversation"}


def _cell(figures: dict[str, Any], against: dict[str, Any], name: str) -> str:
    length = number(figures.get(name, {}).get("mean_acceptance_length"), 2)
    speedup = against.get(name, {}).get("tpot_speedup")
    return f"{length}  {NOTHING if speedup is None else f'{speedup:.2f}x'}"


def heading(report: Report) -> list[str]:
    """Two lines: what ran where, and on which prompts."""
    env, work = report["environment"], report["workload"]
    threads = "" if env.get("threads") is None else f", {count(env['threads'], 'thread')}"
    where = f"{work['target']}, {env.get('dtype')} on {env.get('device')}{threads}"
    made_by = f"specctl {env.get('specctl')}, torch {env.get('torch')}"
    if env.get("servers"):
        where = ", ".join(f"{each['run']}: {each['model']} at {each['url']}" for each in env["servers"])
        made_by = f"{env.get('engine') or 'an unknown engine'} {env.get('release') or ''}".strip()
    total = sum(work["prompts"].values())
    prompts = ", ".join(f"{count} {name}" for name, count in work["prompts"].items())
    warmth = work["temperature"]
    how = "sampling unknown" if warmth is None else "greedy" if warmth == 0 else f"temperature {warmth:g}"
    length = f"at most {number(work['output_len'], 0)} new tokens"
    further = (work.get("requests") or total) - total
    length += f", {count(further, 'further turn')}" if further > 0 else ""
    repeats = count(work["repeats_measured"] or work["repeats"] or 1, "repeat")
    if work.get("trace"):
        how += ", arriving as in the trace"
    elif work.get("request_rate"):
        how += f", {work['request_rate']:g} requests a second"
    return [f"{where} ({made_by})", f"{total} prompts ({prompts}), {length}, {how}, {repeats}"]


def plain(report: Report, width: int = WIDTH) -> str:
    """The report as aligned text; sentences are broken at `width` columns."""
    parts = [wrapped(heading(report), width), *(aligned(table, width) for table in tables(report, width))]
    parts.append(wrapped([*notes(report), report["verdict"]["text"]], width))
    return "\n\n".join([*parts, *_paste(report)]) + "\n"


def _paste(report: Report) -> list[str]:
    """The setting to paste, for each engine that has one."""
    settings = report["verdict"].get("settings") or {}
    lines = []
    for engine, setting in settings.items():
        if engine == "specctl":
            continue
        text, name = setting["text"], f"{engine} {setting['release'] or ''}".strip() + ":"
        option = "--speculative-config " if engine == "vllm" else ""
        quoted = f"'{text}'" if engine == "vllm" else str(text)
        if text is not None:
            lines.append(f"{name} {option}{quoted}" if "\n" not in quoted else f"{name}\n{quoted}")
        lines += [f"{name} {note}" for note in told(setting)]
    return ["\n".join(["To run it:", *lines])] if lines else []


def told(setting: dict[str, Any]) -> list[str]:
    """What must be known before a setting is pasted, or why there is none; the JSON and the page have advice, too."""
    return [note for note in setting["notes"] if not note.startswith("advice:")]


def wrapped(sentences: Iterable[str], width: int = WIDTH) -> str:
    """Sentences, each from a new line, broken at `width` columns."""
    return "\n".join(fill(sentence, width, break_long_words=False, break_on_hyphens=False) for sentence in sentences)


def aligned(table: Table, width: int = WIDTH) -> str:
    """One table as text."""
    return "\n".join(_lines(table, width))


def _lines(table: Table, width: int = WIDTH) -> list[str]:
    """Title (where there is one), header, rule and rows; columns two blanks apart, or one where that is too wide."""
    for name in table.spare:
        if _needed(table, " ") <= width:
            break
        table = _without(table, name)
    lines = [table.header, *table.rows]
    widths = _widths(table)
    gap = "  " if _needed(table, "  ") <= width else " "

    def laid_out(line: Sequence[str]) -> str:
        sides = [str.ljust] * table.left + [str.rjust] * (len(widths) - table.left)
        cells = [side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)]
        return gap.join(cells).rstrip()

    title = wrapped([table.title], width).splitlines()
    return [*title, laid_out(table.header), gap.join("-" * width for width in widths), *map(laid_out, lines[1:])]


def _widths(table: Table) -> list[int]:
    lines = [table.header, *table.rows]
    return [max(len(line[column]) for line in lines) for column in range(len(table.header))]


def _needed(table: Table, gap: str) -> int:
    widths = _widths(table)
    return sum(widths) + len(gap) * (len(widths) - 1)


def show(report: Report) -> None:
    """Print the report: coloured by rich and as wide as the terminal (60 to 100 columns), bare elsewhere."""
    import shutil
    import sys

    if not sys.stdout.isatty():
        sys.stdout.write(plain(report))
        return
    from rich.console import Console

    width = max(NARROW, min(WIDTH, shutil.get_terminal_size().columns))
    console = Console(highlight=False)

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, soft_wrap=True)

    say(wrapped(heading(report), width))
    for table in tables(report, width):
        lines = _lines(table, width)
        styles = ["bold"] * (len(lines) - len(table.rows) - 1) + ["dim", *table.marks]
        say("")
        for line, style in zip(lines, styles, strict=True):
            say(line, style)
    say("")
    say(wrapped(notes(report), width))
    say(wrapped([report["verdict"]["text"]], width), "bold")
    for part in _paste(report):
        say("\n" + part)
