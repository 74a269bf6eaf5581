"""JSON and YAML readers that remember where every key and value stands."""

from __future__ import annotations

import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from specctl.diagnostics import Route, Span
from specctl.source.document import Document, Problem

MAX_DEPTH = 60
MAX_NODES = 200_000

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


class _JsonError(Exception):
    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


class _JsonReader:
    """Reads one JSON text that starts at `base` of the document's text (it may be part of a command line)."""

    def __init__(self, text: str, document: Document, base: int, prefix: Route) -> None:
        self.text, self.document, self.base, self.prefix = text, document, base, prefix

    def span(self, start: int, end: int) -> Span:
        return Span.of(self.document.text, self.base + start, self.base + end)

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def whole(self) -> Any:
        value, end = self.value(self.skip(0), self.prefix, 0)
        end = self.skip(end)
        if end < len(self.text):
            raise _JsonError("text follows after the end of the value", end)
        return value

    def value(self, at: int, route: Route, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise _JsonError(f"more than {MAX_DEPTH} levels of nesting", at)
        start = self.text[at : at + 1]
        value: Any
        if start == "{":
            value, end = self.mapping(at, route, depth)
        elif start == "[":
            value, end = self.sequence(at, route, depth)
        elif start == '"':
            value, end = self.string(at)
        else:
            value, end = self.scalar(at)
        self.document.values[route] = self.span(at, end)
        return value, end

    def string(self, at: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self.text, at + 1, True)
        except ValueError as error:
            where = getattr(error, "pos", at)
            raise _JsonError(str(getattr(error, "msg", error)).lower(), where) from None
        return text, end

    def scalar(self, at: int) -> tuple[Any, int]:
        found = _NUMBER.match(self.text, at)
        if found and found.end() > at:
            after = self.text[found.end() : found.end() + 1]
            if after.isalnum() or after in ("_", "."):
                raise _JsonError("this is not a JSON number", at)
            try:
                whole = found.group(1) is None and found.group(2) is None
                return (int(found.group()) if whole else float(found.group())), found.end()
            except ValueError:
                raise _JsonError("this number is too long", at) from None
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        raise _JsonError(
            "a value was wanted here" if at < len(self.text) else "the text ends where a value was wanted", at
        )

    def mapping(self, at: int, route: Route, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.skip(at + 1)
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                wanted = "a key in double quotes was wanted"
                raise _JsonError(wanted if at < len(self.text) else "the closing brace is missing", at)
            key, end = self.string(at)
            here = (*route, key)
            key_span = self.span(at, end)
            colon = self.skip(end)
            if self.text[colon : colon + 1] != ":":
                raise _JsonError(f"a colon was wanted after the key {key!r}", colon)
            if key in found:
                self.repeated(key, here, key_span)
            found[key], end = self.value(self.skip(colon + 1), here, depth + 1)
            self.document.keys[here] = key_span
            at = self.skip(end)
            if self.text[at : at + 1] == "}":
                return found, at + 1
            if self.text[at : at + 1] != ",":
                raise _JsonError("a comma or the closing brace was wanted", at)
            at = self.skip(at + 1)
            if self.text[at : at + 1] == "}":
                raise _JsonError("a comma before the closing brace", at)

    def sequence(self, at: int, route: Route, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.skip(at + 1)
        if self.text[at : at + 1] == "]":
            return found, at + 1
        while True:
            item, end = self.value(at, (*route, len(found)), depth + 1)
            found.append(item)
            at = self.skip(end)
            if self.text[at : at + 1] == "]":
                return found, at + 1
            if self.text[at : at + 1] != ",":
                raise _JsonError("a comma or the closing bracket was wanted", at)
            at = self.skip(at + 1)

    def repeated(self, key: str, route: Route, span: Span) -> None:
        first = self.document.keys.get(route)
        place = f" (first at line {first.line}, column {first.column})" if first else ""
        self.document.problems.append(
            Problem(
                "SPC004",
                f"the key {key!r} stands twice{place}; the last one wins",
                span,
                help="keep one of them",
                route=route,
            )
        )


def read_json(document: Document, *, base: int = 0, text: str | None = None, prefix: Route = ()) -> Document:
    """Read JSON into `document.value`; `text` at offset `base` where the JSON is a part of the document."""
    part = document.text if text is None else text
    if not part.strip():
        document.refuse(Problem("SPC002", "the text is empty; a JSON object was wanted"))
        return document
    reader = _JsonReader(part, document, base, prefix)
    try:
        document.value = reader.whole()
    except _JsonError as error:
        from specctl.source.damage import explain_json

        help_text, notes, fix = explain_json(part, error.offset)
        line, column = part.count("\n", 0, error.offset) + 1, error.offset - part.rfind("\n", 0, error.offset)
        where = f"column {column}" if "\n" not in part.strip() else f"line {line}, column {column}"
        document.refuse(
            Problem(
                "SPC002",
                f"this is not JSON: {error.message}, at {where}",
                reader.span(error.offset, error.offset + 1),
                help=help_text,
                notes=notes,
                fix=fix,
            )
        )
    return document


def read_yaml(document: Document) -> Document:
    """Read YAML into `document.value` with the rules of PyYAML's safe loader (YAML 1.1: `yes` is true)."""
    from specctl.source.yaml_marks import load

    return load(document)
