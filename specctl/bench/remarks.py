"""What must be said beside the tables, in sentences made from the JSON shape alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specctl.bench.results import Report
from specctl.bench.verdict import label

NOTHING = "-"


def who(run: dict[str, Any]) -> tuple[str, str, str]:
    """Name, k and level of a run, as the tables show them."""
    level = run["concurrency"]
    rate = run.get("request_rate")
    where = str(level) if level is not None else (NOTHING if rate is None else f"{rate:g}/s")
    return run["name"], number(run["k"], 0), where


def number(value: float | None, digits: int) -> str:
    """A figure as the tables show it."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def count(number: int, word: str) -> str:
    """`1 request`, `2 requests`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def notes(report: Report) -> list[str]:
    """What must be said beside the tables: interruption, failures, divergences, how the answers ended."""
    found = []
    work = report["workload"]
    if work.get("interrupted"):
        found.append("Interrupted: these are the blocks that were complete.")
    elif (work["repeats_measured"] or 0) < (work["repeats"] or 0) and not work.get("precision"):
        done = f"{work['repeats_measured']} of {work['repeats']}"
        found.append(f"Only {done} repeats fitted into the time; --repeats {work['repeats']} runs them all.")
    found.extend(_failures(report))
    found.extend(_alarms(report))
    found.extend(_acceptance(report))
    found.extend(_divergence(row, work) for row in report["comparison"] if row["first_divergence"] is not None)
    found.extend(_turns(report))
    found.extend(_peers(report))
    found.extend(_sentence(note) for note in report.get("notes", []))
    open_ones = sum(row["decision"] == "within noise" for row in report["comparison"])
    if open_ones:
        found.append(f"{count(open_ones, 'comparison')} within noise; --precision 0.05 repeats until 5 % is seen.")
    uses = work.get("uses_of_a_prompt") or 0
    if uses > 1:
        found.append(
            f"Each prompt was sent {uses} times to each runtime: a server that remembers text may profit, the bundled "
            "runtime forgets between them."
        )
    if work.get("ended_by_eos_share") is not None:
        whose = "the baseline's answers" if report["comparison"] else "the answers"
        found.append(f"{100 * work['ended_by_eos_share']:.0f} % of {whose} ended by EOS.")
    return found


def _sentence(note: str) -> str:
    of_a_run = "(k=" in note.partition(":")[0]  # it begins with a name
    return (note if of_a_run else note[:1].upper() + note[1:]).rstrip(".") + "."


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
            yield f"{run['name']} at concurrency {who(run)[2]}: {count(run['failed'], 'request')} failed."


def _alarms(report: Report) -> Iterable[str]:
    """Drafts that are accepted as by chance, once a draft, wherever it ran."""
    told = {(run["name"], run["k"]): run["alarm"]["text"] for run in report["runs"] if run.get("alarm")}
    for (name, k), text in told.items():
        yield f"ALARM (!): {label(name, k)}: {text}."


def _divergence(row: dict[str, Any], work: dict[str, Any]) -> str:
    where = row["first_divergence"]
    name = work["request_ids"][where["request"]] + (f" turn {where['turn'] + 1}" if where.get("turn") else "")
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


def _turns(report: Report) -> Iterable[str]:
    """What later turns and a prefix cache did to the times to first token."""
    for run in report["runs"]:
        turns = run.get("by_turn") or {}
        if len(turns) > 1:
            times = ", ".join(f"{number(each['ttft_ms']['mean'], 1)} ms in turn {name}" for name, each in turns.items())
            yield (
                "Each turn sends the whole conversation again, of which a server with a prefix cache computes the end "
                f"alone: TTFT of {run['name']} at concurrency {who(run)[2]} is {times}."
            )
            break
    shares = _cached(report)
    if any(shares.values()):
        told = ", ".join(f"{share:.0%} ({name})" for name, share in shares.items())
        yield f"Prompt tokens that came out of a prefix cache: {told}; TTFT and throughput are those of a warm cache."


def _cached(report: Report) -> dict[str, float]:
    """The share of prompt tokens out of a prefix cache, by run, of those that say it."""
    sums: dict[str, tuple[int, int]] = {}
    for run in report["runs"]:
        if run.get("cached_input_tokens") is not None and run.get("input_tokens"):
            name = label(run["name"], run["k"])
            cached, sent = sums.get(name, (0, 0))
            sums[name] = cached + run["cached_input_tokens"], sent + run["input_tokens"]
    return {name: cached / sent for name, (cached, sent) in sums.items()}


def _peers(report: Report) -> Iterable[str]:
    """How the bundled runtime's plain decoding stands against another runtime's plain decoding."""
    if report["environment"].get("servers"):
        return
    for row in report["comparison"]:
        run = next(run for run in report["runs"] if run["name"] == row["candidate"] and run["k"] == row["k"])
        if run["spec"] is None and run["k"] is None and row["tpot_speedup"]:
            yield f"Plain decoding here is {1 / row['tpot_speedup']:.2f}x as fast as {row['candidate']} (TPOT)."
