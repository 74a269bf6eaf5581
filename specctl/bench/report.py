"""The report for people: tables and sentences made from the JSON shape alone, so that a saved file prints the same.

Tables are lists of text first; `rich` colours them on a terminal. They stay within 100 columns for the usual four
categories; on a narrower terminal columns that can be spared go first, down to 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

from specctl.bench.bound_table import HEADER, SPARE, TITLE, bound_rows
from specctl.bench.formats import against_baseline
from specctl.bench.results import Report
from specctl.bench.verdict import label

NOTHING = "-"
WIDTH, NARROW = 100, 80
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
    found += _split_tables(report, "category", 4 if width >= WIDTH else 3)
    return found + _split_tables(report, "context", 4 if width >= WIDTH else 3)


def _bound_table(report: Report) -> list[Table]:
    rows = tuple(bound_rows(report))
    return [Table(TITLE, HEADER, rows, ("",) * len(rows), spare=SPARE)] if rows else []


def main_table(report: Report) -> Table:
    """One row a run."""
    header = ("method", "k", "conc", "accept", "length", "TPOT ms", "TTFT ms", "tok/s", "speed-up [95 %]", "outputs")
    rows, marks = [], []
    for run in report["runs"]:
        against = against_baseline(report, run)
        rows.append((*_who(run), *_figures(run), *_against(run, against)))
        marks.append(_mark(against))
    return Table("", header, tuple(rows), tuple(marks), spare=("TTFT ms", "accept", "tok/s"))


def _who(run: dict[str, Any]) -> tuple[str, str, str]:
    level = run["concurrency"]
    rate = run.get("request_rate")
    where = str(level) if level is not None else (NOTHING if rate is None else f"{rate:g}/s")
    return run["name"], _number(run["k"], 0), where


def _figures(run: dict[str, Any]) -> tuple[str, ...]:
    rate = run["acceptance_rate"]
    return (
        NOTHING if rate is None else f"{100 * rate:.1f} %" + (" !" if run.get("alarm") else ""),
        _number(run["mean_acceptance_length"], 2),
        _number(run["tpot_ms"]["mean"], 2),
        _number(run["ttft_ms"]["mean"], 1),
        _number(run["output_throughput"], 1),
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
            _number(length, 2),
            _number(against["break_even_acceptance_length"], 2),
            _number(against["cost_per_accepted_token_ms"], 2),
            _number(against["baseline_tpot_ms"], 2),
            _percent(run["draft_time_share"]),
            NOTHING if run["request_goodput"] is None else f"{run['request_goodput']:.2f}/s",
        )
        rows.append((*_who(run), *figures, against["decision"] or NOTHING))
        marks.append(_mark(against))
    table = Table("", header, tuple(rows), tuple(marks), spare=("goodput",))
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


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _split_tables(report: Report, kind: str, a_table: int) -> list[Table]:
    """Acceptance length and speed-up of each candidate by `category` or `context`, a few of them a table."""
    key = f"by_{kind}"
    names = list(dict.fromkeys(name for run in report["runs"] for name in run[key]))
    runs = [(run, against) for run in report["runs"] if (against := against_baseline(report, run)) is not None]
    if not runs or len(names) < 2:
        return []
    found = []
    title = f"acceptance length and speed-up by {'category' if kind == 'category' else 'prompt tokens'}"
    for start in range(0, len(names), a_table):
        part = names[start : start + a_table]
        rows = tuple((*_who(run), *(_cell(run[key], against[key], name) for name in part)) for run, against in runs)
        marks = ("",) * len(rows)
        found.append(Table(title, ("method", "k", "conc", *part), rows, marks))
    return found


def _cell(figures: dict[str, Any], against: dict[str, Any], name: str) -> str:
    length = _number(figures.get(name, {}).get("mean_acceptance_length"), 2)
    speedup = against.get(name, {}).get("tpot_speedup")
    return f"{length}  {NOTHING if speedup is None else f'{speedup:.2f}x'}"


def heading(report: Report) -> list[str]:
    """Two lines: what ran where, and on which prompts."""
    env, work = report["environment"], report["workload"]
    threads = "" if env.get("threads") is None else f", {_count(env['threads'], 'thread')}"
    where = f"{work['target']}, {env.get('dtype')} on {env.get('device')}{threads}"
    made_by = f"specctl {env.get('specctl')}, torch {env.get('torch')}"
    if env.get("servers"):
        where = ", ".join(f"{each['run']}: {each['model']} at {each['url']}" for each in env["servers"])
        made_by = f"{env.get('engine') or 'an unknown engine'} {env.get('release') or ''}".strip()
    total = sum(work["prompts"].values())
    prompts = ", ".join(f"{count} {name}" for name, count in work["prompts"].items())
    how = "greedy" if work["temperature"] == 0 else f"temperature {work['temperature']:g}"
    length = f"at most {work['output_len']} new tokens"
    repeats = _count(work["repeats_measured"] or work["repeats"], "repeat")
    if work.get("trace"):
        how += ", arriving as in the trace"
    elif work.get("request_rate"):
        how += f", {work['request_rate']:g} requests a second"
    return [f"{where} ({made_by})", f"{total} prompts ({prompts}), {length}, {how}, {repeats}"]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def notes(report: Report) -> list[str]:
    """What must be said beside the tables: interruption, failures, divergences, how the answers ended."""
    found = []
    work = report["workload"]
    if work.get("interrupted"):
        found.append("Interrupted: these are the blocks that were complete.")
    elif work["repeats_measured"] < work["repeats"] and not work.get("precision"):
        done = f"{work['repeats_measured']} of {work['repeats']}"
        found.append(f"Only {done} repeats fitted into the time; --repeats {work['repeats']} runs them all.")
    found.extend(_failures(report))
    found.extend(_alarms(report))
    found.extend(_acceptance(report))
    found.extend(_divergence(row, work) for row in report["comparison"] if row["first_divergence"] is not None)
    found.extend(_peers(report))
    found.extend(_sentence(note) for note in report.get("notes", []))
    open_ones = sum(row["decision"] == "within noise" for row in report["comparison"])
    if open_ones:
        found.append(f"{_count(open_ones, 'comparison')} within noise; --precision 0.05 repeats until 5 % is seen.")
    uses = work.get("uses_of_a_prompt") or 0
    if uses > 1:
        found.append(
            f"Each prompt was sent {uses} times to each runtime: a server that remembers text may profit, the bundled "
            "runtime forgets between them."
        )
    if work.get("ended_by_eos_share") is not None:
        found.append(f"{100 * work['ended_by_eos_share']:.0f} % of the baseline's answers ended by EOS.")
    return found


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:].rstrip(".") + "."


def _acceptance(report: Report) -> Iterable[str]:
    """Which settings leave the answers as the target gives them, and which do not."""
    drafted = [run for run in report["runs"] if run["spec"] is not None]
    kept = {label(run["name"], run["k"]): None for run in drafted if run.get("lossless")}
    if kept:
        yield f"Lossless: {', '.join(kept)}."
    changed = {
        f"{label(run['name'], run['k'])} ({_way(run['spec'])})": None for run in drafted if run.get("lossless") is False
    }
    if changed:
        yield f"Lossy, so answers may differ from the target's and are not compared: {', '.join(changed)}."


def _way(spec: dict[str, Any]) -> str:
    acceptance = spec.get("acceptance", {})
    return f"{acceptance['method']} acceptance" if "method" in acceptance else "accept thresholds"


def _failures(report: Report) -> Iterable[str]:
    for run in report["runs"]:
        if run["failed"]:
            yield f"{run['name']} at concurrency {_who(run)[2]}: {_count(run['failed'], 'request')} failed."


def _alarms(report: Report) -> Iterable[str]:
    """Drafts that are accepted as by chance, once a draft, wherever it ran."""
    told = {(run["name"], run["k"]): run["alarm"]["text"] for run in report["runs"] if run.get("alarm")}
    for (name, k), text in told.items():
        yield f"ALARM (!): {label(name, k)}: {text}."


def _divergence(row: dict[str, Any], work: dict[str, Any]) -> str:
    where = row["first_divergence"]
    name = work["request_ids"][where["request"]]
    kind = where.get("kind", "real")
    gap = (
        f"logit margin {where['margin']:.2g}"
        if where["margin"] is not None
        else _NO_MARGIN.get(kind, "no margin known")
    )
    who = f"{label(row['candidate'], row['k'])} at concurrency {row['concurrency']}"
    counts = ", ".join(f"{count} {name}" for name, count in row["differences"].items())
    checked = f" ({counts} of {row['outputs_checked']} outputs)" if counts and row.get("outputs_checked") else ""
    return f"{who}, {row['outputs']}{checked}: request {name}, {where.get('unit', 'token')} {where['token']}, {gap}."


_NO_MARGIN = {"truncation": "one output was cut there", "sampling": "sampled"}


def _peers(report: Report) -> Iterable[str]:
    """How the bundled runtime's plain decoding stands against another runtime's plain decoding."""
    if report["environment"].get("servers"):
        return
    for row in report["comparison"]:
        run = next(run for run in report["runs"] if run["name"] == row["candidate"] and run["k"] == row["k"])
        if run["spec"] is None and run["k"] is None and row["tpot_speedup"]:
            yield f"Plain decoding here is {1 / row['tpot_speedup']:.2f}x as fast as {row['candidate']} (TPOT)."


def plain(report: Report, width: int = WIDTH) -> str:
    """The report as aligned text; sentences are broken at `width` columns."""
    parts = [_wrapped(heading(report), width), *(aligned(table, width) for table in tables(report, width))]
    parts.append(_wrapped([*notes(report), report["verdict"]["text"]], width))
    return "\n\n".join([*parts, *_paste(report)]) + "\n"


def _paste(report: Report) -> list[str]:
    """The setting to paste, for each engine that has one."""
    settings = report["verdict"].get("settings") or {}
    lines = []
    for engine, setting in settings.items():
        if setting["text"] is None or engine == "specctl":
            continue
        text = setting["text"]
        option = "--speculative-config " if engine == "vllm" else ""
        quoted = f"'{text}'" if engine == "vllm" else text
        name = f"{engine} {setting['release']}:"
        lines.append(f"{name} {option}{quoted}" if "\n" not in quoted else f"{name}\n{quoted}")
    return ["\n".join(["To run it:", *lines])] if lines else []


def _wrapped(sentences: Iterable[str], width: int = WIDTH) -> str:
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

    title = [table.title] if table.title else []
    return [*title, laid_out(table.header), gap.join("-" * width for width in widths), *map(laid_out, lines[1:])]


def _widths(table: Table) -> list[int]:
    lines = [table.header, *table.rows]
    return [max(len(line[column]) for line in lines) for column in range(len(table.header))]


def _needed(table: Table, gap: str) -> int:
    widths = _widths(table)
    return sum(widths) + len(gap) * (len(widths) - 1)


def show(report: Report) -> None:
    """Print the report: coloured by rich and as wide as the terminal (80 to 100 columns), bare elsewhere."""
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

    say(_wrapped(heading(report), width))
    for table in tables(report, width):
        lines = _lines(table, width)
        styles = ["bold"] * (len(lines) - len(table.rows) - 1) + ["dim", *table.marks]
        say("")
        for line, style in zip(lines, styles, strict=True):
            say(line, style)
    say("")
    say(_wrapped(notes(report), width))
    say(_wrapped([report["verdict"]["text"]], width), "bold")
    for part in _paste(report):
        say("\n" + part)
