"""Reads specctl's own YAML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specctl.diagnostics import Fix, Route
from specctl.dialects import coerce as types
from specctl.dialects import own_check
from specctl.dialects.choices import read_choices
from specctl.dialects.coerce import BadValue, lax_int
from specctl.dialects.field import Field, assemble
from specctl.dialects.foreign import explain_key
from specctl.dialects.own import ACCEPTANCE, DRAFT, ENGINE, ROWS, TREE, method_rows
from specctl.dialects.own_schema import LIMITED
from specctl.dialects.reading import Finding, Reading, Surroundings, coerce, nearest, shown
from specctl.source import Document
from specctl.spec import METHODS, Origin, ScheduleStep, SpecDecodeConfig, Tree
from specctl.spec.config import ABOUT
from specctl.spec.release import bounds


def read(document: Document, around: Surroundings, release: str, form: str) -> Reading:
    """The reading of a document; every form is taken as the mapping it holds."""
    reading = Reading(ENGINE, ENGINE, release, document, around)
    value = document.value
    if not document.readable:
        reading.blocked = True
    elif form == "argv" or not isinstance(value, dict):
        reading.say(
            Finding(
                "SPC011",
                f"the setting is {shown(value)}; a mapping with specctl: 1 and method: was wanted",
                (),
                help="write specctl: 1, method: ngram, num_speculative_tokens: 4",
            )
        )
        reading.blocked = True
    else:
        _root(reading, value)
    return reading


def _root(reading: Reading, value: dict[Any, Any]) -> None:
    name = value.get("method")
    if not isinstance(name, str) or name not in METHODS:
        _bad_method(reading, name)
        return
    rows = {row.key: row for row in (*ROWS, *method_rows(name))}
    found = _keys(reading, value, rows, ())
    for part, part_rows in (("acceptance", ACCEPTANCE), ("draft", DRAFT)):
        nested = value.get(part)
        if isinstance(nested, dict):
            found |= _keys(reading, nested, {row.key: row for row in part_rows}, (part,))
    found["schedule"] = _schedule(reading, value.get("schedule"))
    found["tree"] = _tree(reading, value.get("tree"))
    reading.notes["method"] = name
    reading.fallback = list(own_check.faults(value, name))
    _finish(reading, name, {path: item for path, item in found.items() if item is not None}, value)


def _bad_method(reading: Reading, name: Any) -> None:
    reading.blocked = True
    near = nearest(str(name), METHODS) if name is not None else None
    message = f"{shown(name)} is no method of specctl" if name is not None else "the method is missing"
    reading.say(
        Finding(
            "SPC101",
            message,
            ("method",),
            help=f"did you mean {near}?" if near else f"methods are {', '.join(METHODS)}",
            fix=Fix(("method",), near) if near else None,
        )
    )


def _keys(reading: Reading, value: dict[Any, Any], rows: dict[str, Field], base: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, raw in value.items():
        route = (*base, key)
        row = rows.get(str(key))
        if row is None:
            reading.say(_unknown(str(key), raw, route, rows))
            continue
        read_value = coerce(reading, row, raw, route, types.LAX)
        reading.values[".".join((*map(str, base), row.key))] = read_value
        if row.path and read_value.good and read_value.value is not None:
            found[row.path] = read_value.value
    return found


def _unknown(key: str, raw: Any, route: Route, known: Iterable[str]) -> Finding:
    near = nearest(key, known)
    help_text = (
        f"did you mean {near}?"
        if near
        else explain_key(key, raw, ENGINE) or "native keys of an engine go into engine_options"
    )
    return Finding(
        "SPC005",
        f"specctl's format has no key {key!r} here",
        route,
        at_key=True,
        help=help_text,
        fix=Fix(route, key=near, replacement=raw) if near else None,
    )


def _schedule(reading: Reading, raw: Any) -> tuple[ScheduleStep, ...] | None:
    if raw is None:
        return None
    wanted = "a list of entries [first batch size, last or null, k]"
    try:
        steps = tuple(
            ScheduleStep(lax_int(first), None if last is None else lax_int(last), lax_int(k)) for first, last, k in raw
        )
    except (BadValue, TypeError, ValueError):
        reading.say(
            Finding(
                "SPC006",
                f"schedule is {shown(raw)}; {wanted} was wanted",
                ("schedule",),
                help="write [[1, 8, 4], [9, null, 0]]",
            )
        )
        return None
    fault = _fault(steps)
    if fault:
        reading.say(Finding("SPC104", f"the schedule {fault}", ("schedule",), help="write [[1, 8, 4], [9, null, 0]]"))
        return None
    return steps


def _fault(steps: tuple[ScheduleStep, ...]) -> str | None:
    expected = 1
    for step in steps:
        if step.num_speculative_tokens < 0:
            return "has a negative draft length"
        if step.first < expected or (step.last is not None and step.last < step.first):
            return f"has a range that begins at {step.first} behind or inside another one"
        if step.last is None and step is not steps[-1]:
            return "has an open range before its end"
        expected = (step.last or step.first) + 1
    return "is empty" if not steps else None


def _tree(reading: Reading, raw: Any) -> Tree | None:
    if not isinstance(raw, dict):
        return None
    rows = {row.key: row for row in TREE}
    before = len(reading.findings)
    _keys(reading, raw, rows, ("tree",))
    topk, nodes, raw_paths = (reading.values.get(f"tree.{key}") for key in ("topk", "num_nodes", "choices"))
    if len(reading.findings) > before:
        return None
    try:
        paths = read_choices(raw_paths.value) if raw_paths and raw_paths.value is not None else ()
    except BadValue as error:
        text = f"tree.choices is {shown(raw_paths and raw_paths.value)}; {error.wanted} was wanted"
        reading.say(Finding("SPC006", text, ("tree", "choices"), help="write choices: [[0], [1], [0, 0]]"))
        return None
    tree = Tree(topk.value if topk else None, nodes.value if nodes else None, paths)
    if tree.fault:
        reading.say(
            Finding("SPC160", f"the tree {tree.fault}", ("tree",), help="write topk: 4, or choices: [[0], [1]]")
        )
        return None
    return tree


def _finish(reading: Reading, name: str, found: dict[str, Any], value: dict[Any, Any]) -> None:
    options = value.get("engine_options")
    kept = (
        {str(engine): dict(keys) for engine, keys in options.items() if isinstance(keys, dict)}
        if isinstance(options, dict)
        else {}
    )
    spec: SpecDecodeConfig = assemble(
        METHODS[name](),
        found,
        engine_options=kept,
        about=_about(value),
        origin=Origin(reading.document.source, ENGINE, "1"),
    )
    reading.spec = spec
    if reading.around.target is None and spec.target is not None:
        reading.around.target = spec.target
    reading.notes["draft"] = reading.around.facts(spec.model)
    reading.effective = _effective(spec)


def _about(value: dict[Any, Any]) -> dict[str, Any]:
    """What the file says of itself; limits only where they can be read."""
    found = {key: value[key] for key in ABOUT if value.get(key) is not None}
    if "engines" in found:
        limits = found["engines"] if isinstance(found["engines"], dict) else {}
        found["engines"] = {key: text for key, text in limits.items() if key in LIMITED and _is_range(text)}
    return found


def _is_range(text: Any) -> bool:
    try:
        return isinstance(text, str) and bounds(text) is not None
    except ValueError:
        return False


def _effective(spec: SpecDecodeConfig) -> dict[str, Any]:
    """What the bundled runtime uses, defaults of the method filled in."""
    from dataclasses import fields

    own = {row.name: getattr(spec.method, row.name) for row in fields(spec.method)}
    return (
        {"method": spec.method.name, "model": spec.model, "num_speculative_tokens": spec.num_speculative_tokens}
        | own
        | {"draft_sample_method": spec.draft_sample_method}
    )
