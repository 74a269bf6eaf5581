"""SARIF 2.1.0, for code-scanning tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from specctl.diagnostics.model import ADVICE, ERROR, WARNING, Diagnostic, Result, Totals

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {ERROR: "error", WARNING: "warning", ADVICE: "note"}


def _uri(source: str) -> str:
    from urllib.parse import quote

    path = PurePath(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")


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


def _result(found: Diagnostic, one: Result, index: int) -> dict[str, Any]:
    text = found.message
    if found.help:
        text += f". Help: {found.help}" + ("" if found.help.endswith((".", "?", "!")) else ".")
    return {
        "ruleId": found.code,
        "ruleIndex": index,
        "level": _LEVELS[found.severity],
        "message": {"text": text},
        "locations": [_location(found, one)],
        "properties": {"engine": one.engine, "release": one.release, "route": [str(part) for part in found.route]},
    }


def _rule(found: Diagnostic) -> dict[str, Any]:
    return {
        "id": found.code,
        "name": "".join(part.title() for part in found.name.split("-")),
        "shortDescription": {"text": found.name.replace("-", " ") or found.code},
        "defaultConfiguration": {"level": _LEVELS[found.severity]},
    }


def pieces(results: Iterable[Result | None], *, version: str = "0") -> Iterator[str]:
    """One SARIF log with one run, piece by piece; the number of skipped files stands in the run's properties."""
    totals = Totals()
    rules: dict[str, dict[str, Any]] = {}
    yield f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{"results": ['
    separator = "\n"
    for one in totals.counted(results):
        for found in one.diagnostics:
            rules.setdefault(found.code, _rule(found))
            index = list(rules).index(found.code)
            yield separator + json.dumps(_result(found, one, index), ensure_ascii=False)
            separator = ",\n"
    # The rules stand behind the results: which of them occur is known only now.
    run = {
        "tool": {"driver": {"name": "specctl", "version": version, "rules": list(rules.values())}},
        "columnKind": "unicodeCodePoints",
        "properties": {"skippedFiles": totals.skipped_files},
    }
    yield "\n],\n" + json.dumps(run, ensure_ascii=False)[1:] + "]}\n"


def render(results: Iterable[Result | None], *, version: str = "0") -> str:
    """The pieces in one text."""
    return "".join(pieces(results, version=version))
