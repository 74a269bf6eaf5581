"""Changes entries of a YAML mapping in the text itself, so that comments, order and spacing around them stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specctl.diagnostics import Route


@dataclass(frozen=True)
class Edit:
    """What becomes of an entry: another name, another value (`changed`), or nothing (`key` None)."""

    key: str | None
    value: Any = None
    changed: bool = False


def edited(text: str, base: Route, edits: Mapping[str, Edit], added: Mapping[str, Any]) -> str | None:
    """The text with `edits` (by old key) made in the mapping at `base`, and `added` behind its last entry.

    None where the mapping is not written in block style with an entry a line, so that lines cannot be kept."""
    import yaml

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    node = _at(root, base)
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return None
    marks = [key.start_mark for key, _ in node.value]
    if len({mark.line for mark in marks}) < len(marks) or any(mark.column != marks[0].column for mark in marks):
        return None
    lines = text.split("\n")
    pieces: list[tuple[int, int, str]] = []
    for key, value in node.value:
        edit = edits.get(key.value)
        if edit is None:
            continue
        if edit.key is None:
            pieces.append((_start(lines, key.start_mark.line), _start(lines, _end(value).line + 1), ""))
            continue
        pieces.append((key.start_mark.index, key.end_mark.index, edit.key))
        if edit.changed:
            block = isinstance(value, yaml.CollectionNode) and not value.flow_style
            begin = key.end_mark.index if block else value.start_mark.index
            pieces.append((begin, _end(value).index, (": " if block else "") + inline(edit.value)))
    if added:
        last = _start(lines, _end(node).line + 1)
        indent = " " * marks[0].column
        new = "".join(f"{indent}{key}: {inline(value)}\n" for key, value in added.items())
        pieces.append((last, last, new if last <= len(text) and text[last - 1 : last] == "\n" else "\n" + new))
    for begin, end, new in sorted(pieces, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def inline(value: Any) -> str:
    """A value on one line."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return str(text).removesuffix("...\n").strip()


def _at(node: Any, route: Route) -> Any:
    for part in route:
        pairs = getattr(node, "value", None)
        found = [value for key, value in pairs if key.value == part] if isinstance(pairs, list) else []
        if not found:
            return None
        node = found[-1]
    return node


def _end(node: Any) -> Any:
    """The mark behind a node's last word; a block collection's own mark lies behind the comments that follow it."""
    while isinstance(node.value, list) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node.end_mark


def _start(lines: list[str], number: int) -> int:
    return min(sum(len(line) + 1 for line in lines[:number]), sum(len(line) + 1 for line in lines) - 1)
