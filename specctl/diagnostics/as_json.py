"""The JSON form of results (`format_version` 1)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specctl.diagnostics.model import ERROR, WARNING, Diagnostic, Result, Totals

FORMAT_VERSION = 1


def plain(value: Any) -> Any:
    """`value` as JSON types: mappings with text keys, lists, and no NaN or infinity (they become text)."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value)


def diagnostic(found: Diagnostic) -> dict[str, Any]:
    """One diagnostic as a JSON object."""
    span = found.span
    return {
        "code": found.code,
        "name": found.name,
        "severity": found.severity,
        "message": found.message,
        "route": list(found.route),
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
        "help": found.help,
        "notes": list(found.notes),
        "fix": plain(found.fix.as_dict()) if found.fix else None,
    }


def result(one: Result) -> dict[str, Any]:
    """One result as a JSON object."""
    found = {
        "source": one.source,
        "dialect": one.dialect,
        "engine": one.engine,
        "release": one.release,
        "verdict": one.verdict,
        "spec": plain(one.spec),
        "effective": plain(one.effective),
        "diagnostics": [diagnostic(each) for each in one.diagnostics],
        "skipped": [{"code": each.code, "needs": list(each.needs)} for each in one.skipped],
    }
    if one.assumptions:  # what nobody said; absent where nothing was taken for granted
        found["assumptions"] = list(one.assumptions)
    return found


def pieces(results: Iterable[Result | None]) -> Iterator[str]:
    """The JSON text of all results, piece by piece, ending in a newline; None stands for a file without a setting."""
    totals = Totals()
    yield f'{{\n  "format_version": {FORMAT_VERSION},\n  "results": ['
    for number, one in enumerate(totals.counted(results)):
        text = json.dumps(result(one), indent=2, ensure_ascii=False)
        yield ("," if number else "") + "\n    " + text.replace("\n", "\n    ")
    closing = {
        "valid": not totals.found[ERROR],
        "skipped_files": totals.skipped_files,
        "errors": totals.found[ERROR],
        "warnings": totals.found[WARNING],
    }
    yield ("\n  ]" if totals.results else "]") + "," + json.dumps(closing, indent=2)[1:] + "\n"


def render(results: Iterable[Result | None]) -> str:
    """The pieces in one text."""
    return "".join(pieces(results))
