"""JSON Schemas by chance: objects, arrays, enums, numbers and bounded strings, at most three deep; seeded."""

from __future__ import annotations

import random
from typing import Any

WORDS = ("red", "green", "blue", "north", "south", "small", "large", "naïve", 'a "quoted" word', "1", "")
NAMES = ("name", "size", "kind", "count", "price", "tags", "at", "note", "größe")
MAX_DEPTH = 3


def schemas(count: int, seed: int) -> list[dict[str, Any]]:
    """`count` schemas whose root is an object or an array."""
    draw = random.Random(seed)
    return [_object(draw, 1) if draw.random() < 0.8 else _array(draw, 1) for _ in range(count)]


def _any(draw: random.Random, depth: int) -> dict[str, Any]:
    leaves = [_enum, _integer, _number, _string, _boolean]
    kinds = leaves if depth >= MAX_DEPTH else [*leaves, _object, _array]
    return draw.choice(kinds)(draw, depth + 1)


def _object(draw: random.Random, depth: int) -> dict[str, Any]:
    names = draw.sample(NAMES, draw.randrange(1, 4))
    required = [name for name in names if draw.random() < 0.8]
    properties = {name: _any(draw, depth) for name in names}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(draw: random.Random, depth: int) -> dict[str, Any]:
    least = draw.randrange(3)
    return {"type": "array", "items": _any(draw, depth), "minItems": least, "maxItems": least + draw.randrange(3)}


def _enum(draw: random.Random, depth: int) -> dict[str, Any]:
    del depth
    return {"enum": draw.sample([*WORDS, 1, 2.5, True, None], draw.randrange(1, 5))}


def _integer(draw: random.Random, depth: int) -> dict[str, Any]:
    del depth
    low = draw.randrange(-1000, 1000)
    return {"type": "integer", "minimum": low, "maximum": low + draw.randrange(5000)}


def _number(draw: random.Random, depth: int) -> dict[str, Any]:
    del depth
    low = round(draw.uniform(-50, 50), 1)
    return {"type": "number", "minimum": low, "maximum": low + 100}


def _string(draw: random.Random, depth: int) -> dict[str, Any]:
    del depth
    least = draw.randrange(4)
    return {"type": "string", "minLength": least, "maxLength": least + draw.randrange(8)}


def _boolean(draw: random.Random, depth: int) -> dict[str, Any]:
    del draw, depth
    return {"type": "boolean"}
