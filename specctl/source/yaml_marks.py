"""The YAML half of `marked`: composes a node tree with PyYAML and turns it into values and places."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from specctl.diagnostics import Route, Span
from specctl.source.document import Document, Problem

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 60
MAX_NODES = 200_000
ODD_BREAKS = ("\r", "\x85", "\u2028", "\u2029")


class _TooMuch(Exception):
    pass


def load(document: Document) -> Document:
    """Fill `document.value` and its places; problems of syntax become diagnostics. Empty text gives the value None."""
    try:
        node = yaml.compose(document.text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        document.refuse(_syntax_problem(document, error))
        return document
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        document.refuse(Problem("SPC003", f"this is not YAML: {str(error).splitlines()[0]}", document.whole()))
        return document
    return document if node is None else fill(document, node)


def fill(document: Document, node: Any) -> Document:
    """Fill `document.value` and its places from a node of its text."""
    try:
        document.value = _Walk(document).value(node, (), 0)
    except (_TooMuch, RecursionError):
        document.refuse(Problem("SPC003", "this YAML is nested or repeated beyond any settings file", document.whole()))
    return document


def _syntax_problem(document: Document, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    span = None
    if mark is not None:
        odd = any(each in document.text for each in ODD_BREAKS)
        offset = mark.index if odd else _offset(document.text, mark.line, mark.column)
        span = Span.of(document.text, offset, offset + 1)
    line = document.text.split("\n")[mark.line] if mark is not None and mark.line <= document.text.count("\n") else ""
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    if mark is not None and "\t" in line[: len(line) - len(line.lstrip())]:
        return Problem(
            "SPC003",
            f"this is not YAML: line {mark.line + 1} is indented with a tab",
            span,
            help="YAML is indented with blanks only; replace the tab by two blanks",
        )
    if "{{" in line or "{%" in line:
        return Problem(
            "SPC003",
            f"this is not YAML{place}: template marks are left in the text",
            span,
            help="render the template first",
        )
    if error.problem == "but found another document":
        return Problem(
            "SPC003",
            "this file holds several YAML documents; the engines read a file with one",
            span,
            help="split it at the line ---, one setting a file",
        )
    reason = (error.problem or error.context or "it does not parse").replace("found character", "a character")
    return Problem(
        "SPC003",
        f"this is not YAML{place}: {reason}",
        span,
        help="check the indentation and the quotes of this line and the one before",
    )


def _offset(text: str, line: int, column: int) -> int:
    at = 0
    for _ in range(line):
        following = text.find("\n", at)
        if following < 0:
            return len(text)
        at = following + 1
    return min(at + column, len(text))


class _Walk:
    """Turns nodes into values. Python's `SafeConstructor` decides what a plain word means."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.construct = SafeConstructor()
        self.seen = 0
        self.lines = document.text.split("\n")
        # YAML also breaks lines at these; our places count newlines only.
        self.odd_breaks = any(mark in document.text for mark in ODD_BREAKS)

    def span(self, node: Any) -> Span:
        start, end = node.start_mark, node.end_mark
        if self.odd_breaks:
            return Span.of(self.document.text, start.index, end.index)
        first, column = self.inside(start.line, start.column)
        last, end_column = self.inside(end.line, end.column)
        if not isinstance(node, yaml.ScalarNode) and first != last:
            last, end_column = first, max(len(self.lines[first].rstrip()), column + 1)
        return Span(first + 1, column + 1, last + 1, end_column + 1)

    def inside(self, line: int, column: int) -> tuple[int, int]:
        """The place, moved to the end of the text where libyaml points behind it."""
        if line >= len(self.lines):
            line, column = len(self.lines) - 1, len(self.lines[-1])
        return line, min(column, len(self.lines[line]))

    def value(self, node: Any, route: Route, depth: int) -> Any:
        self.seen += 1
        if depth > MAX_DEPTH or self.seen > MAX_NODES:
            raise _TooMuch
        self.document.values[route] = self.span(node)
        self.tagged(node, route)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, route, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*route, number), depth + 1) for number, item in enumerate(node.value)]
        return self.scalar(node)

    def scalar(self, node: Any) -> Any:
        try:
            return self.construct.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError):
            return node.value

    def mapping(self, node: Any, route: Route, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                self.merge(value_node, route, depth, found)
                continue
            key = self.scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else key_node.start_mark.column
            if not isinstance(key_node, yaml.ScalarNode):
                self.odd_key(key_node, route)
            here = (*route, key if isinstance(key, (str, int)) else str(key))
            if here[-1] in found and here in self.document.keys:
                self.repeated(here, key_node)
            self.document.keys[here] = self.span(key_node)
            found[here[-1]] = self.value(value_node, here, depth + 1)
        return found

    def merge(self, node: Any, route: Route, depth: int, found: dict[Any, Any]) -> None:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if isinstance(part, yaml.MappingNode):
                for key, value in self.mapping(part, route, depth + 1).items():
                    found.setdefault(key, value)

    def tagged(self, node: Any, route: Route) -> None:
        """The engines read with PyYAML's safe loader, which stops at a tag that it does not know."""
        if node.tag not in SafeConstructor.yaml_constructors:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            text = f"the YAML tag {tag} is unknown to a safe loader; the engine cannot read the file"
            help_text = "write the plain value without a tag"
            self.document.problems.append(Problem("SPC003", text, self.span(node), help=help_text, route=route))

    def odd_key(self, node: Any, route: Route) -> None:
        """A mapping or list as a key: most often the two braces of a template."""
        text, help_text = "a list or an object cannot be a key; the engine cannot read the file", "write a plain key"
        span = self.span(node)
        if span.column > 1 and self.lines[span.line - 1][span.column - 2 : span.column] == "{{":
            text, help_text = "template marks are left in the text", "render the template first"
            span = Span(span.line, span.column - 1, span.end_line, span.end_column)
        self.document.problems.append(Problem("SPC003", text, span, help=help_text, route=route))

    def repeated(self, route: Route, node: Any) -> None:
        first = self.document.keys[route]
        self.document.problems.append(
            Problem(
                "SPC004",
                f"the key {route[-1]!r} stands twice (first at line {first.line}); the last one wins",
                self.span(node),
                help="keep one of them",
                route=route,
            )
        )
