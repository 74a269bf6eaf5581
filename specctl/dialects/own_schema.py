"""The JSON Schema of specctl's own files: the rows, and the shapes that no row can say."""

from __future__ import annotations

from typing import Any

from specctl.dialects import own, trtllm, vllm
from specctl.dialects.field import Field
from specctl.spec import METHODS
from specctl.spec.release import BOUND

ENGINES = ("vllm", "sglang", "trtllm")
LIMITED = (*ENGINES, own.ENGINE)
_RANGE = rf"^\s*(?:\*|{BOUND}(?:\s*,\s*{BOUND})*)\s*$"


def _texts(doc: str) -> dict[str, Any]:
    return {"type": ["string", "array", "null"], "items": {"type": "string"}, "description": doc}


def _closed(properties: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False} | extra


def _figures(doc: str, **bounds: float) -> dict[str, Any]:
    return {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "number"} | bounds,
        "description": doc,
    }


ENTRY: dict[str, Any] = {
    "type": "object",
    "description": "figures of one source and k",
    "properties": {
        "k": {"type": "integer", "minimum": 1, "description": "drafted tokens a step"},
        "acceptance_length": _figures("tokens a verify step, bonus included, by dataset", minimum=1),
        "acceptance_rate": _figures("accepted / drafted tokens, by dataset", minimum=0, maximum=1),
        "conditions": {"type": "string", "description": "engine, hardware, temperature, load"},
        "source": {"type": "string", "description": "where these figures are from"},
    },
    "required": ["k"],
    "anyOf": [{"required": ["acceptance_length"]}, {"required": ["acceptance_rate"]}],
    "additionalProperties": False,
}
PARTS: dict[str, Any] = {
    "engines": _closed(
        {
            name: {
                "type": "string",
                "pattern": _RANGE,
                "description": "a range of releases such as >=0.31 or >=1.2,<1.4, or * for any",
                "examples": [">=0.31"],
            }
            for name in LIMITED
        },
        description="the engines and releases that this setting was made for",
    ),
    "source": _texts("where the setting comes from"),
    "advice": _texts("up to which load the setting pays, and what else to know"),
    "published": {"type": ["array", "null"], "items": ENTRY, "description": "published acceptance figures"},
    "engine_options": _closed(
        {
            "vllm": _closed({row.key: {} for row in vllm.ROWS}, description="keys of vLLM's object, kept as they are"),
            "trtllm": _closed(
                {name: {} for row in trtllm.ROWS for name in (row.key, *row.aliases)},
                description="keys of TensorRT-LLM's speculative_config, kept as they are",
            ),
            # Any flag of the server may stand here, with underscores; SGLang's own reader knows them.
            "sglang": {"type": ["object", "null"], "description": "flags of SGLang with underscores, kept as they are"},
        },
        description="native keys that have no common meaning",
    ),
    "schedule": {
        "type": ["array", "null"],
        "description": "draft length by batch size: [first, last or null, k]",
        "examples": [[[1, 8, 4], [9, None, 0]]],
        "items": {
            "type": "array",
            "prefixItems": [
                {"type": "integer", "minimum": 1},
                {"type": ["integer", "null"], "minimum": 1},
                {"type": "integer", "minimum": 0},
            ],
            "minItems": 3,
            "maxItems": 3,
        },
    },
}


def for_own(of_rows: Any) -> dict[str, Any]:
    """One alternative a method: the shared keys, those of the method, and the parts. `of_rows`: schema's maker of an
    object from rows.
    """

    def nested(rows: tuple[Field, ...]) -> dict[str, Any]:
        made: dict[str, Any] = of_rows(rows)
        return made | {"type": ["object", "null"]}

    parts = PARTS | {"acceptance": nested(own.ACCEPTANCE), "draft": nested(own.DRAFT), "tree": nested(own.TREE)}
    references = {name: {"$ref": f"#/$defs/{name}"} for name in parts}
    kinds = []
    for name in METHODS:
        body = of_rows((*own.ROWS, *own.method_rows(name)))
        body["properties"] |= references | {"method": {"const": name}, "specctl": {"const": 1}}
        kinds.append(body | {"title": name})
    return {"type": "object", "required": ["specctl", "method"], "oneOf": kinds, "$defs": parts}
