"""Annotations for GitHub Actions: one workflow command a diagnostic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specctl.diagnostics.model import ADVICE, ERROR, WARNING, Diagnostic, Result, Totals

_COMMANDS = {ERROR: "error", WARNING: "warning", ADVICE: "notice"}


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _line(found: Diagnostic, one: Result) -> str:
    parts = [f"title={_property(f'{found.code} {found.name}')}"]
    span = found.span
    if not one.source.startswith("<"):
        parts.insert(0, f"file={_property(one.source)}")
        if span is not None:
            parts.append(f"line={span.line},endLine={span.end_line}")
            # GitHub shows columns only where the finding stays on one line.
            if span.line == span.end_line:
                parts.append(f"col={span.column},endColumn={span.end_column}")
    text = found.message + (f"\nhelp: {found.help}" if found.help else "")
    return f"::{_COMMANDS[found.severity]} {','.join(parts)}::{_message(text)}"


def pieces(results: Iterable[Result | None]) -> Iterator[str]:
    """All annotations, one a line, and a plain summary line; None stands for a file without a setting."""
    totals = Totals()
    for one in totals.counted(results):
        for found in one.diagnostics:
            yield _line(found, one) + "\n"
    errors, warnings = totals.found[ERROR], totals.found[WARNING]
    counts = (("setting", totals.results), ("error", errors), ("warning", warnings), ("file", totals.skipped_files))
    settings, *others = (f"{count} {word}{'s' * (count != 1)}" for word, count in counts)
    yield f"{settings} checked, {', '.join(others)} skipped\n"


def render(results: Iterable[Result | None]) -> str:
    """The pieces in one text."""
    return "".join(pieces(results))
