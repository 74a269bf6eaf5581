"""Holds a file of specctl's own against the committed schema, and says each fault at its place.

jsonschema is imported here and nowhere else, and only for such files. What a row or a rule has to say of the same place
is said better there: a reader hands these findings on as `Reading.fallback`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from specctl.diagnostics import Fix, Route
from specctl.dialects.reading import Finding, nearest, shown
from specctl.resources import schemas_dir

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


class _Fault(Protocol):
    """What we read of a jsonschema.ValidationError; its schema is always a mapping here."""

    validator: Any
    validator_value: Any
    instance: Any
    schema: Any


_CODES = {
    "type": "SPC006",
    "enum": "SPC105",
    "const": "SPC105",
    "pattern": "SPC105",
    "minimum": "SPC104",
    "maximum": "SPC104",
}
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object with keys",
}


@cache
def _validator(method: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    whole = json.loads((schemas_dir() / "specctl.schema.json").read_text(encoding="utf-8"))
    body = next(kind for kind in whole["oneOf"] if kind["title"] == method)
    return Draft202012Validator(body | {"required": whole["required"], "$defs": whole["$defs"]})


def faults(value: dict[Any, Any], method: str) -> Iterator[Finding]:
    """What the schema of `method` has against the root mapping of a file."""
    for error in _validator(method).iter_errors(value):
        route: Route = tuple(error.absolute_path)
        fault: _Fault = error
        if error.validator == "additionalProperties":
            yield from _unknown(fault, route)
        elif error.validator in ("required", "anyOf"):
            yield from _missing(fault, route)
        else:
            yield Finding(
                _CODES.get(str(error.validator), "SPC006"),
                f"{_name(route)} is {shown(error.instance)}; {_wanted(fault)} was wanted",
                route,
                help=_help(fault, route),
            )


def _name(route: Route) -> str:
    text = ""
    for part in route:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def _unknown(error: _Fault, route: Route) -> Iterator[Finding]:
    known = list(error.schema["properties"])
    for key in error.instance:
        if key in known:
            continue
        near = nearest(str(key), known)
        yield Finding(
            "SPC005",
            f"{_name(route)} has no key {shown(key)}",
            (*route, key),
            at_key=True,
            help=f"did you mean {near}?" if near else f"keys are {', '.join(known)}",
            fix=Fix((*route, key), key=near) if near else None,
        )


def _missing(error: _Fault, route: Route) -> Iterator[Finding]:
    if error.validator == "anyOf":  # every anyOf of ours is a choice of required keys
        lacking = [" or ".join(choice["required"][0] for choice in error.validator_value)]
    else:
        lacking = [key for key in error.validator_value if key not in error.instance]
    for key in lacking:
        yield Finding("SPC160", f"{_name(route)} lacks {key}", route, help=f"add {key}")


def _wanted(error: _Fault) -> str:
    rule, limit = str(error.validator), error.validator_value
    if rule == "type":
        kinds = [limit] if isinstance(limit, str) else [kind for kind in limit if kind != "null"]
        return " or ".join(_WORDS[kind] for kind in kinds)
    if rule in ("minimum", "maximum"):
        return f"at {'least' if rule == 'minimum' else 'most'} {limit:g}"
    if rule == "enum":
        return "one of " + ", ".join(shown(each) for each in limit if each is not None)
    if rule == "const":
        return shown(limit)
    if rule in ("minItems", "maxItems"):
        return f"{'at least' if rule == 'minItems' else 'at most'} {limit} entries"
    return str(error.schema.get("description") or "something else")


def _help(error: _Fault, route: Route) -> str:
    examples = error.schema.get("examples")
    if examples:
        return f"write {route[-1] if route else 'it'}: {json.dumps(examples[0])}"
    about = error.schema.get("description")
    return f"{_name(route)}: {about}" if about else f"write {_wanted(error)}"
