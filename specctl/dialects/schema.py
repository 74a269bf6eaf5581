"""JSON Schemas (2020-12) made from the rows: one an engine and release, one for specctl's own files.

python -m specctl.dialects.schema        writes schemas/
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from specctl.dialects import own_schema, sglang, trtllm, vllm
from specctl.dialects.field import Field
from specctl.dialects.foreign import title
from specctl.dialects.trtllm_keys import ROOT_KEYS
from specctl.dialects.trtllm_line import is_new
from specctl.spec.release import KNOWN_RELEASES

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "str": {"type": "string"},
    "ints": {"type": "array", "items": {"type": "integer"}},
    "floats": {"type": "array", "items": {"type": "number"}},
    "triples": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    },
    "int_map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "object": {"type": "object"},
    "any": {},
}


def of_row(row: Field) -> dict[str, Any]:
    """The schema of one value."""
    found = dict(_TYPES[row.kind])
    if row.choices:
        found["enum"] = [*row.choices, *([None] if row.nullable else [])]
    if row.minimum is not None:
        found["minimum"] = int(row.minimum) if row.kind == "int" else row.minimum
    if row.maximum is not None:
        found["maximum"] = int(row.maximum) if row.kind == "int" else row.maximum
    if row.nullable and "type" in found:
        found["type"] = [found["type"], "null"]
    return found | ({"description": row.doc} if row.doc else {})


def of_rows(rows: Iterable[Field], **extra: Any) -> dict[str, Any]:
    """The schema of an object with these keys and no others."""
    listed = list(rows)
    found = {name: of_row(row) for row in listed for name in (row.key, *row.aliases)}
    return {"type": "object", "properties": found, "additionalProperties": False} | extra


def _head(name: str, about: str) -> dict[str, Any]:
    return {"$schema": _DRAFT, "$id": f"{name}.schema.json", "title": about}


def for_vllm(release: str) -> dict[str, Any]:
    """The object of `--speculative-config`, or a `--config` YAML that holds it beside other flags."""
    body = of_rows(row for row in vllm.ROWS if row.in_release(release))
    body["properties"]["method"] = {"enum": list(vllm.METHOD_NAMES), "description": "how tokens are drafted"}
    nested = {**body, "type": ["object", "string", "null"], "description": "the setting, nested or as JSON text"}
    file = {
        "speculative-config": nested,
        "speculative_config": nested,
        "spec-method": {"enum": list(vllm.METHOD_NAMES), "description": "method, beside the other flags"},
        "spec-model": {"type": "string", "description": "model, beside the other flags"},
        "spec-tokens": {"type": "integer", "minimum": 1, "description": "num_speculative_tokens, beside the others"},
    }
    return _head(f"vllm-{release}", f"vLLM {release}: --speculative-config, or a --config YAML with it") | {
        "type": "object",
        "properties": body["properties"] | file,
        # A file of flags has others, too; the setting alone has its own keys only.
        "if": {"anyOf": [{"required": [key]} for key in file]},
        "else": {"propertyNames": {"enum": list(body["properties"])}},
        "examples": [
            {"method": "ngram", "num_speculative_tokens": 4},
            {"model": "org/target", "speculative-config": {"method": "ngram", "num_speculative_tokens": 4}},
        ],
    }


def for_sglang(release: str) -> dict[str, Any]:
    """The flags of a `--config` YAML; other flags may stand beside them."""
    rows = {name.replace("_", "-"): of_row(row) for row in sglang.ROWS for name in (row.key, *row.aliases)}
    rows["speculative-algorithm"] = {
        "type": "string",
        "description": "how tokens are drafted",
        "examples": list(sglang.ALGORITHMS),
    }
    return _head(f"sglang-{release}", f"SGLang {release}: --config YAML") | {
        "type": "object",
        "properties": rows,
        "propertyNames": {"if": {"pattern": "^speculative"}, "then": {"enum": list(rows)}},
        "examples": [{"model-path": "org/target", "speculative-algorithm": "NGRAM"}],
    }


def for_trtllm(release: str) -> dict[str, Any]:
    """The YAML with `speculative_config`: one alternative a decoding type."""
    kinds = []
    for name in trtllm.types(release):
        body = of_rows(row for row in trtllm.ROWS if row.in_release(release) and row.for_method(name))
        body["properties"]["decoding_type"] = {"const": name}
        kinds.append(body | {"required": ["decoding_type"], "title": name})
    setting: dict[str, Any] = {"oneOf": kinds, "description": "the one setting of speculation"}
    if is_new(release):
        setting["oneOf"] = [*kinds, {"type": "null", "title": "off"}]
    root = {
        "type": "object",
        "properties": {"speculative_config": setting},
        "propertyNames": {"enum": ["speculative_config", *sorted(ROOT_KEYS)]},
        "examples": [{"speculative_config": {"decoding_type": "MTP"}}],
    }
    return _head(f"trtllm-{release}", f"TensorRT-LLM {release}: --config YAML") | root


def for_own() -> dict[str, Any]:
    """specctl's own files: the shared keys and those of the chosen method."""
    return _head("specctl", "specctl YAML") | own_schema.for_own(of_rows)


def schemas() -> dict[str, dict[str, Any]]:
    """All schemas by file name."""
    found = {f"vllm-{release}": for_vllm(release) for release in KNOWN_RELEASES["vllm"]}
    found |= {f"sglang-{release}": for_sglang(release) for release in KNOWN_RELEASES["sglang"]}
    found |= {f"trtllm-{release}": for_trtllm(release) for release in KNOWN_RELEASES["trtllm"]}
    return {f"{name}.schema.json": schema for name, schema in (found | {"specctl": for_own()}).items()}


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it is committed."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from specctl.resources import schemas_dir

    schemas_dir().mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (schemas_dir() / name).write_text(text_of(schema), encoding="utf-8")
    print(f"wrote {len(schemas())} schemas for {', '.join(map(title, KNOWN_RELEASES))}")
