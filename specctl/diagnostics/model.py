"""A finding, its place, and the result of one source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Route = tuple[str | int, ...]

ERROR = "error"
WARNING = "warning"
ADVICE = "advice"
_RANK = {ERROR: 0, WARNING: 1, ADVICE: 2}


@dataclass(frozen=True)
class Span:
    """A stretch of source text; lines and columns count from 1, the end column is the one behind the last character."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, text: str, start: int, end: int) -> Span:
        """The span of `text[start:end]`; offsets outside the text are moved to its ends."""
        start = max(0, min(start, len(text)))
        end = max(start, min(end, len(text)))
        line, column = _position(text, start)
        end_line, end_column = _position(text, end)
        return cls(line, column, end_line, end_column)


def _position(text: str, offset: int) -> tuple[int, int]:
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


@dataclass(frozen=True)
class Fix:
    """A change that is safe to make: put `replacement` at `route` (the empty route is the whole value).

    Rules may instead rename the key at `route` (`key`) or remove it (`remove`); the printed form of such a fix
    replaces the object around it, so that route and replacement are all one needs to apply it."""

    route: Route
    replacement: Any = None
    key: str | None = None
    remove: bool = False

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"route": list(self.route), "replacement": self.replacement}


@dataclass(frozen=True)
class Diagnostic:
    """One finding: what is wrong (`message`), where (`route`, `span`), and what to do (`help`, `fix`)."""

    code: str
    name: str
    severity: str
    message: str
    route: Route = ()
    span: Span | None = None
    help: str | None = None
    notes: tuple[str, ...] = ()
    fix: Fix | None = None

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Sort key: errors first, then by place."""
        where = self.span or Span(1, 1, 1, 1)
        return (_RANK[self.severity], where.line, where.column, self.code)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not look: `needs` names what was missing (`target`, `draft`, `draft weights`)."""

    code: str
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """Everything said about one source. `text` is the source as it was read, for snippets."""

    source: str
    text: str
    dialect: str
    engine: str
    release: str
    verdict: str
    spec: Mapping[str, Any] | None
    effective: Mapping[str, Any]
    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    assumptions: tuple[str, ...] = field(default=())

    def count(self, severity: str) -> int:
        """How many diagnostics have this severity."""
        return sum(1 for each in self.diagnostics if each.severity == severity)


class Totals:
    """What has gone by in a run over many sources, so that a format need not keep the results themselves.

    A source that is None is a file without a setting."""

    def __init__(self) -> None:
        self.results = 0
        self.skipped_files = 0
        self.found: Counter[str] = Counter()

    def counted(self, results: Iterable[Result | None]) -> Iterator[Result]:
        """The results that are one, each counted as it passes."""
        for one in results:
            if one is None:
                self.skipped_files += 1
                continue
            self.results += 1
            self.found.update(each.severity for each in one.diagnostics)
            yield one
