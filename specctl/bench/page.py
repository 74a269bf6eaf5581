"""The report as one HTML page that needs nothing else: verdict, plots, tables, settings to paste, notes.

Every figure comes from the JSON, so page and JSON cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from specctl.bench.figures import figures
from specctl.bench.page_style import LIGHT, sheet
from specctl.bench.remarks import notes
from specctl.bench.report import Table, heading, tables
from specctl.bench.results import Report
from specctl.bench.verdict import label

Choice = tuple[str, int | None]
_CLASSES = {"keep": "keep", "drop": "drop", "within noise": "noise"}


def page(reports: Sequence[Report], titles: Sequence[str] = ()) -> str:
    """One page for one or several reports; `titles` stand above them where there are several."""
    parts = [_report(report, title) for report, title in zip(reports, titles or [""] * len(reports), strict=True)]
    about = escape(reports[0]["workload"]["target"] or "a report")
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>specctl bench: {about}</title><style>{sheet()}</style></head>"
    )
    return f"{head}<body><main>{''.join(parts)}</main></body></html>\n"


def colours(report: Report) -> dict[Choice, int]:
    """The number of each run's colour; the baseline is grey."""
    names = list(dict.fromkeys((run["name"], run["k"]) for run in report["runs"]))
    first = 0 if names and names[0][0] == "baseline" else 1
    return {
        name: place if place < len(LIGHT) else 1 + (place - 1) % (len(LIGHT) - 1)
        for place, name in enumerate(names, first)
    }


def _report(report: Report, title: str) -> str:
    lines = "".join(f'<p class="soft">{escape(line)}</p>' for line in heading(report))
    verdict = escape(report["verdict"]["text"])
    parts = [
        f"<h1>specctl bench{' – ' + escape(title) if title else ''}</h1>",
        f'<p class="verdict">{verdict}</p>{lines}',
        _levels(report),
        _plots(report),
        "<h2>Figures</h2>",
        *(_table(table) for table in tables(report)),
        _settings(report),
        _notes(report),
    ]
    return "".join(parts)


def _levels(report: Report) -> str:
    """A card for each level: what to do there."""
    cards = []
    for level in report["verdict"].get("by_concurrency", []):
        decision = level["decision"] or "not measured"
        where = "" if level["concurrency"] is None else f"concurrency {level['concurrency']}"
        ends = level.get("tpot_speedup_ci")
        interval = "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]"
        speed = "" if level["tpot_speedup"] is None else f"{level['tpot_speedup']:.2f}x{interval}"
        cards.append(
            f'<div class="level">{where}<b class="{_CLASSES.get(decision, "")}">{escape(decision)}</b>'
            f"{escape(label(level['candidate'], level['k']))}<br>{speed}</div>"
        )
    return f'<div class="levels">{"".join(cards)}</div>' if cards else ""


def _plots(report: Report) -> str:
    found = colours(report)
    chips = "".join(
        f'<span><i style="--c:var(--c{colour})"></i>{escape(label(*choice))}</span>' for choice, colour in found.items()
    )
    drawn = "".join(
        f"<figure><figcaption>{escape(each.title)}<span>{escape(each.caption)}</span></figcaption>{each.svg}</figure>"
        for each in figures(report, found)
    )
    return f'<h2>Plots</h2><div class="legend">{chips}</div><div class="plots">{drawn}</div>' if drawn else ""


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(
        f'<tr class="{mark}">' + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row, mark in zip(table.rows, table.marks, strict=True)
    )
    title = f'<p class="soft">{escape(table.title)}</p>' if table.title else ""
    return f'{title}<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _settings(report: Report) -> str:
    settings: dict[str, Any] = report["verdict"].get("settings") or {}
    blocks = []
    for engine, setting in settings.items():
        said = "".join(f'<p class="soft">{escape(note)}</p>' for note in setting["notes"])
        if setting["text"] is not None:
            said = f"<pre>{escape(setting['text'])}</pre>{said}"
        name = engine if engine == "specctl" else f"{engine} {setting['release'] or ''}"
        blocks.append(f"<h3>{escape(name)}</h3>{said}")
    return f"<h2>The setting to paste</h2>{''.join(blocks)}" if blocks else ""


def _notes(report: Report) -> str:
    lines = [*notes(report), *(f"{row['request']}: {row['error']}" for row in report.get("failures", [])[:20])]
    return f"<h2>Notes</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
