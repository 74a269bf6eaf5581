"""What the engines' own parsers make of a value that has another type than the key wants.

`lax` is what vLLM and TensorRT-LLM do (pydantic's lax mode), `words` what an argparse flag does with its text.
A coercion returns the value the engine sees, or raises `BadValue` with the type that was wanted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

_TRUE = {"1", "on", "t", "true", "y", "yes"}
_FALSE = {"0", "off", "f", "false", "n", "no"}
# Unicode's white space. Python's strip() takes four control characters more.
_BLANKS = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SEPARATORS = frozenset("\x1c\x1d\x1e\x1f")
_INT_TEXT = r"^[+-]?\d+(_\d+)*(\.0+)?$"


class BadValue(Exception):
    """The engine refuses the value; `wanted` says what it takes."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def _trimmed(raw: Any) -> str:
    """Text without the blanks around it that pydantic passes over; empty where it is not ASCII then, or no text."""
    found = raw.strip(_BLANKS) if isinstance(raw, str) else ""
    return found if found.isascii() and not set(found) & _SEPARATORS else ""


def lax_int(raw: Any) -> int:
    """`3`, `"3"`, `3.0`, `true` become whole numbers; `3.5`, `null` and words do not."""
    if isinstance(raw, bool):
        return int(raw)
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float):
        # Beyond 64 bits a float is no whole number to pydantic.
        if math.isfinite(raw) and raw == int(raw) and abs(raw) < 2**63:
            return int(raw)
        raise BadValue("a whole number" if math.isfinite(raw) else "a finite whole number")
    digits = _trimmed(raw)
    if len(digits) < 400 and re.match(_INT_TEXT, digits):
        return int(digits.split(".", 1)[0])
    raise BadValue("a whole number")


def lax_float(raw: Any) -> float:
    """Numbers, numbers in text, and booleans become floats."""
    if isinstance(raw, (bool, int, float)):
        try:
            return float(raw)
        except OverflowError:
            raise BadValue("a number") from None
    try:
        return float(_trimmed(raw))
    except ValueError:
        raise BadValue("a number") from None


def lax_bool(raw: Any) -> bool:
    """`true`, `1`, `"yes"` and their opposites."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, (int, float)) and raw in (0, 1):
        return bool(raw)
    if isinstance(raw, str) and raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    raise BadValue("true or false")


def text(raw: Any) -> str:
    """Text only; numbers are not turned into text."""
    if isinstance(raw, str):
        return raw
    raise BadValue("text")


def lax_ints(raw: Any) -> list[int]:
    """A list of whole numbers."""
    if isinstance(raw, list):
        return [lax_int(item) for item in raw]
    raise BadValue("a list of whole numbers")


def lax_floats(raw: Any) -> list[float]:
    """A list of numbers."""
    if isinstance(raw, list):
        return [lax_float(item) for item in raw]
    raise BadValue("a list of numbers")


def lax_triples(raw: Any) -> list[list[int]]:
    """A list of entries `[first, last, k]`."""
    wanted = "a list of entries [first batch size, last batch size, k], three whole numbers each"
    if not isinstance(raw, list):
        raise BadValue(wanted)
    try:
        entries = [[lax_int(number) for number in entry] for entry in raw if isinstance(entry, list)]
    except BadValue:
        raise BadValue(wanted) from None
    if len(entries) != len(raw) or any(len(entry) != 3 for entry in entries):
        raise BadValue(wanted)
    return entries


def lax_int_map(raw: Any) -> dict[int, int]:
    """A mapping from whole numbers (text keys are read) to whole numbers."""
    if not isinstance(raw, dict):
        raise BadValue("a mapping from batch sizes to draft lengths")
    return {lax_int(key): lax_int(value) for key, value in raw.items()}


def mapping(raw: Any) -> dict[str, Any]:
    """A mapping."""
    if isinstance(raw, dict):
        return raw
    raise BadValue("an object with keys")


def anything(raw: Any) -> Any:
    """Whatever stands there."""
    return raw


LAX: dict[str, Callable[[Any], Any]] = {
    "int": lax_int,
    "float": lax_float,
    "bool": lax_bool,
    "str": text,
    "ints": lax_ints,
    "floats": lax_floats,
    "triples": lax_triples,
    "int_map": lax_int_map,
    "object": mapping,
    "any": anything,
}


def word_int(raw: str) -> int:
    """What `int()` reads; `3.0` and `8k` are refused."""
    try:
        return int(raw)
    except ValueError:
        raise BadValue("a whole number") from None


def word_float(raw: str) -> float:
    """What `float()` reads."""
    try:
        return float(raw)
    except ValueError:
        raise BadValue("a number") from None


WORDS: dict[str, Callable[[Any], Any]] = {
    "int": word_int,
    "float": word_float,
    "str": text,
    "bool": anything,
    "any": anything,
}
