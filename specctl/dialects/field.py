"""`Field`: one row for each native key; readers, writers, schemas, docs and did-you-mean are all made from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from specctl.spec import Acceptance, DraftOptions, Method, SpecDecodeConfig
from specctl.spec.release import Release

_PARTS = {"acceptance": Acceptance, "draft": DraftOptions}


@dataclass(frozen=True)
class Field:
    """One native key.

    `path`: where its value lives in the canonical spec (`num_speculative_tokens`, `draft.revision`,
    `method.max_tree_depth`); None where it has no canonical meaning and is carried as it is. `kind` names the
    coercion. `minimum`/`maximum`: inclusive range that the engine itself checks. `methods`: native method names that
    know the key (empty: all). `since`/`until`: first release with the key, first release without it. `load`/`dump`
    translate between native and canonical value."""

    key: str
    path: str | None = None
    kind: str = "str"
    nullable: bool = True
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    methods: frozenset[str] = frozenset()
    since: str | None = None
    until: str | None = None
    aliases: tuple[str, ...] = ()
    load: Callable[[Any], Any] | None = None
    dump: Callable[[Any], Any] | None = None
    unchecked: bool = False
    doc: str = ""

    def in_release(self, release: str) -> bool:
        """Whether `release` knows this key."""
        here = Release.parse(release)
        return (self.since is None or Release.parse(self.since) <= here) and (
            self.until is None or here < Release.parse(self.until)
        )

    def for_method(self, method: str | None) -> bool:
        """Whether the native method `method` knows this key."""
        return not self.methods or method in self.methods

    def range_text(self) -> str:
        """The range in words, such as `at least 1` or `0 to 1`."""
        if self.minimum is not None and self.maximum is not None:
            return f"between {self.minimum:g} and {self.maximum:g}"
        if self.minimum is not None:
            return f"at least {self.minimum:g}"
        return f"at most {self.maximum:g}" if self.maximum is not None else ""


def by_key(rows: Iterable[Field], release: str, method: str | None = None) -> dict[str, Field]:
    """The rows of one release and method by key and alias."""
    found: dict[str, Field] = {}
    for row in rows:
        if row.in_release(release) and row.for_method(method):
            for name in (row.key, *row.aliases):
                found[name] = row
    return found


def read_path(spec: SpecDecodeConfig, path: str) -> Any:
    """The canonical value at `path`; None where this method has no such key."""
    head, _, tail = path.partition(".")
    part = getattr(spec, head)
    return getattr(part, tail, None) if tail else part


def default_at(spec: SpecDecodeConfig, path: str) -> Any:
    """The default of the canonical value at `path`."""
    head, _, tail = path.partition(".")
    owner = type(spec.method) if head == "method" else _PARTS.get(head, SpecDecodeConfig)
    for row in fields(owner):
        if row.name == (tail or head):
            return row.default
    return None


def has_path(method: type[Method], path: str) -> bool:
    """Whether specs of `method` have a place for `path`."""
    head, _, tail = path.partition(".")
    return head != "method" or tail in {row.name for row in fields(method)}


def assemble(method: Method, values: Mapping[str, Any], **base: Any) -> SpecDecodeConfig:
    """A spec from canonical paths and values; paths that the method lacks must not be among them."""
    own: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    top: dict[str, Any] = dict(base)
    for path, value in values.items():
        head, _, tail = path.partition(".")
        value = tuple(value) if isinstance(value, list) else value
        if head == "method":
            own[tail] = value
        elif tail:
            parts.setdefault(head, {})[tail] = value
        else:
            top[head] = value
    built = {head: _PARTS[head](**found) for head, found in parts.items()}
    return SpecDecodeConfig(method=replace(method, **own), **top, **built)
