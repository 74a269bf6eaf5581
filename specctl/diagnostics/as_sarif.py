"""SARIF 2.1.0, for code-scanning tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from specctl.diagnostics.model import ADVICE, ERROR, WARNING, Diagnostic, Result

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {ERROR: "error", WARNING: "warning", ADVICE: "note"}


def _uri(source: str) -> str:
    from urllib.parse import quote

    path = PurePath(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _location(found: Diagnostic, one: Result) -> dict[str, Any]:
    if one.source.startswith("<"):
        return {"logicalLocations": [{"name": one.source, "kind": "parameter"}]}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(one.source)}}
    span = found.span
    if span is not None:
        physical["region"] = {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    return {"physicalLocation": physical}


def _result(found: Diagnostic, one: Result, index: Mapping[str, int]) -> dict[str, Any]:
    text = found.message + (f" Help: {found.help}." if found.help else "")
    return {
        "ruleId": found.code,
        "ruleIndex": index[found.code],
        "level": _LEVELS[found.severity],
        "message": {"text": text},
        "locations": [_location(found, one)],
        "properties": {"engine": one.engine, "release": one.release, "route": [str(part) for part in found.route]},
    }


def render(results: Iterable[Result], skipped_files: int = 0, *, version: str = "0") -> str:
    """One SARIF log with one run. `skipped_files` stands in the run's properties."""
    listed = list(results)
    codes = {found.code: found for one in listed for found in one.diagnostics}
    index = {code: number for number, code in enumerate(sorted(codes))}
    rules = [
        {
            "id": code,
            "name": "".join(part.title() for part in codes[code].name.split("-")),
            "shortDescription": {"text": codes[code].name.replace("-", " ") or code},
            "defaultConfiguration": {"level": _LEVELS[codes[code].severity]},
        }
        for code in sorted(codes)
    ]
    run = {
        "tool": {"driver": {"name": "specctl", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, one, index) for one in listed for found in one.diagnostics],
        "properties": {"skippedFiles": skipped_files},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"
