"""JSON Schemas of requests: what the grammar library would pass over in silence is named here.

The library itself refuses the keywords that it knows and lacks; one that nobody knows (a typing error, mostly) it takes
for a note, and the answer would not keep to it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from specctl.server.api_error import bad_request
from specctl.server.fields import wrong_type


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMAS = _words(
    "items prefixItems additionalItems additionalProperties allOf anyOf oneOf not if then else contains propertyNames "
    "unevaluatedItems unevaluatedProperties"
)
_OTHERS = _words(
    "$anchor $comment $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $ref $schema $vocabulary const "
    "contentEncoding contentMediaType contentSchema default dependencies dependentRequired deprecated description enum "
    "example examples exclusiveMaximum exclusiveMinimum format id maxContains maxItems maxLength maxProperties maximum "
    "minContains minItems minLength minProperties minimum multipleOf pattern readOnly required title type uniqueItems "
    "writeOnly"
)
_KEYWORDS = _SCHEMAS_BY_NAME | _SCHEMAS | _OTHERS
MAX_DEPTH = 64


def check_schema(name: str, schema: Any, depth: int = 0) -> None:
    """Raises ApiError (400) for a keyword that JSON Schema does not have, at whatever depth, and for what is no schema.

    `name`: the field the schema stands in, for the message.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise wrong_type(name, "a JSON Schema (an object)", schema)
    if depth > MAX_DEPTH:
        raise bad_request(f"'{name[:200]}' is nested more than {MAX_DEPTH} deep", name[:200], "invalid_value")
    for key, value in schema.items():
        if key not in _KEYWORDS and not key.startswith("x-"):
            near = difflib.get_close_matches(key, _KEYWORDS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            message = f"'{name}' has the keyword '{key[:64]}', which JSON Schema does not have{hint}"
            raise bad_request(message, name, "unsupported_schema")
        if key == "x-guidance":
            raise bad_request(f"'{name}' sets 'x-guidance'; leave it out", name, "unsupported_schema")
        for place, inner in _inner(key, value):
            check_schema(f"{name}.{place}", inner, depth + 1)


def _inner(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The schemas inside one keyword, with their places; what has another shape is left to the library to refuse."""
    if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
        for name, schema in value.items():
            yield f"{key}.{name[:64]}", schema
    elif key in _SCHEMAS and isinstance(value, list):
        for index, schema in enumerate(value):
            yield f"{key}[{index}]", schema
    elif key in _SCHEMAS:
        yield key, value
