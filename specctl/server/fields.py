"""How the values of request fields are read, and what is said about those that cannot be. The rows themselves are in
`field_rows`.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from specctl.server.api_error import ApiError, bad_request

MAX_STOP_STRINGS = 32
MAX_STOP_STRING_LENGTH = 1000  # characters
MAX_STOP_TOKEN_IDS = 256
MAX_TEXTS = 256
MAX_BIASES = 1024
_WITH_TEXT = (str, list, dict)


@dataclass(frozen=True)
class Field:
    """A supported field: `read(name, value)` returns the checked value or raises ApiError naming the field."""

    read: Callable[[str, Any], Any]
    default: Any = None


def kind(value: Any) -> str:
    """The JSON type of a value, with its article, for messages."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")


def wrong_type(name: str, wanted: str, value: Any) -> ApiError:
    """A 400 that says what was wanted and what was found; values themselves are not repeated, they may be private."""
    return bad_request(f"'{name}' must be {wanted}, got {kind(value)}", name, "invalid_type")


def unsupported(name: str, hint: str | None = None) -> ApiError:
    """A 400 for a field that this server does not have; ignoring it would give an answer that was not asked for."""
    rest = f" ({hint})" if hint else ""
    return bad_request(f"'{name}' is not supported by this server{rest}", name, "unsupported_parameter")


def boolean(name: str, value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise wrong_type(name, "a boolean", value)
    return value


def integer(name: str, value: Any) -> int:
    """A whole number; JSON has one kind of numbers, so 3.0 is one, while 3.5 and "3" are none."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, "an integer", value)
    if abs(value) >= 2**63:
        raise bad_request(f"'{name}' must fit into 64 bits", name, "invalid_value")
    return value


def number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, "a number", value)
    if not math.isfinite(value) or abs(value) > 1e300:
        raise bad_request(f"'{name}' must be a finite number", name, "invalid_value")
    return float(value)


def text(name: str, value: Any) -> str:
    """A string that can be encoded: JSON can spell halves of a surrogate pair, which are no characters."""
    if not isinstance(value, str):
        raise wrong_type(name, "a string", value)
    characters(name, value)
    return value


def characters(name: str, value: Any) -> None:
    """Raises ApiError (400) for a string anywhere in a JSON value, keys included, that cannot be encoded."""
    left = [(name, value)]
    while left:
        place, item = left.pop()
        if isinstance(item, str):
            _encodable(place, item)
        elif isinstance(item, list):
            left += [
                (f"{place}[{index}]"[:200], each) for index, each in enumerate(item) if isinstance(each, _WITH_TEXT)
            ]
        elif isinstance(item, dict):
            for key in item:
                _encodable(place, key)
            before = f"{place}." if place else ""
            left += [(f"{before}{key}"[:200], each) for key, each in item.items() if isinstance(each, _WITH_TEXT)]


def _encodable(name: str, value: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        shown, where = name or None, f"'{name}'" if name else "a field's name"
        raise bad_request(f"{where} holds a lone surrogate, which is no character", shown, "invalid_value") from None


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise wrong_type(name, "an object", value)
    return value


def at_least(low: int, high: int | None = None) -> Callable[[str, Any], int]:
    """A reader of integers from `low` to `high`, both included."""

    def read(name: str, value: Any) -> int:
        found = integer(name, value)
        if found < low or (high is not None and found > high):
            wanted = f"at least {low}" if high is None else f"from {low} to {high}"
            raise bad_request(f"'{name}' is {found}; it must be {wanted}", name, "invalid_value")
        return found

    return read


def top_k(name: str, value: Any) -> int:
    """vLLM reads both -1 and 0 as off; so do we. Returns 0 for off."""
    return max(0, at_least(-1)(name, value))


def stop_strings(name: str, value: Any) -> tuple[str, ...]:
    """A string or an array of strings, none of them empty."""
    if isinstance(value, str):
        return (_stop_string(name, value),)
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of strings", value)
    if len(value) > MAX_STOP_STRINGS:
        raise bad_request(f"'{name}' has {len(value)} strings; at most {MAX_STOP_STRINGS} are allowed", name)
    return tuple(_stop_string(f"{name}[{index}]", item) for index, item in enumerate(value))


def _stop_string(name: str, value: Any) -> str:
    found = text(name, value)
    if not 0 < len(found) <= MAX_STOP_STRING_LENGTH:
        wanted = f"1 to {MAX_STOP_STRING_LENGTH} characters"
        raise bad_request(f"'{name}' has {len(found)} characters; it must have {wanted}", name, "invalid_value")
    return found


def token_ids(name: str, value: Any) -> list[int]:
    """An array of token ids, each at least 0; whether the vocabulary has them is asked later."""
    if not isinstance(value, list):
        raise wrong_type(name, "an array of token ids", value)
    for index, item in enumerate(value):
        if type(item) is not int:
            raise wrong_type(f"{name}[{index}]", "a token id (an integer)", item)
        if not 0 <= item < 2**31:
            raise bad_request(f"'{name}[{index}]' is {item}, which is no token id", name, "invalid_value")
    return value


def stop_token_ids(name: str, value: Any) -> tuple[int, ...]:
    """A short array of token ids."""
    found = token_ids(name, value)
    if len(found) > MAX_STOP_TOKEN_IDS:
        raise bad_request(f"'{name}' has {len(found)} ids; at most {MAX_STOP_TOKEN_IDS} are allowed", name)
    return tuple(found)


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A short array of strings, none of them empty."""
    if not isinstance(value, list):
        raise wrong_type(name, "an array of strings", value)
    if len(value) > MAX_TEXTS:
        raise bad_request(f"'{name}' has {len(value)} strings; at most {MAX_TEXTS} are allowed", name, "invalid_value")
    return tuple(_stop_string(f"{name}[{index}]", item) for index, item in enumerate(value))


def some_token_ids(name: str, value: Any) -> tuple[int, ...]:
    """An array of token ids with at least one in it."""
    found = token_ids(name, value)
    if not found:
        raise bad_request(f"'{name}' is empty; it must hold at least one token id", name, "invalid_value")
    return tuple(found)


def logit_bias(name: str, value: Any) -> tuple[tuple[int, float], ...]:
    """An object of token id (JSON keys are strings) to a number from -100 to 100."""
    found = mapping(name, value)
    if len(found) > MAX_BIASES:
        raise bad_request(f"'{name}' has {len(found)} entries; at most {MAX_BIASES} are allowed", name, "invalid_value")
    return tuple((_token_key(name, key), _bias(f"{name}.{key[:20]}", item)) for key, item in found.items())


def _token_key(name: str, key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 11):
        raise bad_request(f"'{name}' has the key '{key[:20]}', which is no token id", name, "invalid_value")
    return int(key)


def _bias(name: str, value: Any) -> float:
    found = number(name, value)
    if abs(found) > 100:
        raise bad_request(f"'{name}' is {found:g}; it must be from -100 to 100", name, "invalid_value")
    return found


def read_fields(
    body: Mapping[str, Any], fields: Mapping[str, Field], neutral: Mapping[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """Every field of `fields`, checked or at its default.

    A field at null counts as left out. Raises ApiError (400) for a wrong type, for an unsupported field at a value that
    is not neutral, and for a field that nobody knows.
    """
    for name, value in body.items():
        if name not in fields:
            _refuse_unless_neutral(name, value, fields, neutral)
    given = {name: value for name, value in body.items() if value is not None}
    return {name: row.read(name, given[name]) if name in given else row.default for name, row in fields.items()}


def _refuse_unless_neutral(
    name: str, value: Any, fields: Iterable[str], neutral: Mapping[str, tuple[Any, ...]]
) -> None:
    if name not in neutral:
        near = difflib.get_close_matches(name, [*fields, *neutral], n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise bad_request(f"unknown field '{name[:64]}'{hint}", name[:64], "unknown_parameter")
    if value is None or any(_same(value, allowed) for allowed in neutral[name]):
        return
    values = " or ".join(json.dumps(item) for item in neutral[name])
    rest = f"leave it out or at {values}" if values else "leave it out"
    raise unsupported(name, rest)


def _same(value: Any, allowed: Any) -> bool:
    """Equality as JSON sees it: 0 equals 0.0, but not false."""
    return isinstance(value, bool) == isinstance(allowed, bool) and value == allowed
