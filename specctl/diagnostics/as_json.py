"""The JSON form of results (`format_version` 1)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from specctl.diagnostics.model import ERROR, WARNING, Diagnostic, Result

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
    return {
        "source": one.source,
        "dialect": one.dialect,
        "engine": one.engine,
        "release": one.release,
        "verdict": one.verdict,
        "spec": plain(one.spec),
        "effective": plain(one.effective),
        "diagnostics": [diagnostic(each) for each in one.diagnostics],
        "skipped": [{"code": each.code, "needs": list(each.needs)} for each in one.skipped],
        "assumptions": list(one.assumptions),
    }


def report(results: Iterable[Result], skipped_files: int = 0) -> dict[str, Any]:
    """All results as one JSON object."""
    listed = list(results)
    errors = sum(one.count(ERROR) for one in listed)
    return {
        "format_version": FORMAT_VERSION,
        "valid": errors == 0,
        "results": [result(one) for one in listed],
        "skipped_files": skipped_files,
        "errors": errors,
        "warnings": sum(one.count(WARNING) for one in listed),
    }


def render(results: Iterable[Result], skipped_files: int = 0) -> str:
    """The JSON text, ending in a newline."""
    return json.dumps(report(results, skipped_files), indent=2, ensure_ascii=False) + "\n"
