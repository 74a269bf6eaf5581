"""What an answer must keep to: `response_format`, vLLM's `structured_outputs` and its older `guided_*` fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specctl.runtime import grammar
from specctl.server.api_error import bad_request
from specctl.server.fields import Field, boolean, characters, mapping, read_fields, text, texts, unsupported
from specctl.server.schemas import check_schema

ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class AnswerFormat:
    """`field`: the one that asked for it, for messages; `make`: its grammar, which costs time."""

    field: str
    make: Callable[[], str]


def answer_format(found: Mapping[str, Any]) -> AnswerFormat | None:
    """The one format of a body, None where it asks for none. Raises ApiError (400) where two fields ask for one."""
    formats = [each for each in (read(found) for read in (_response_format, _structured, _guided)) if each]
    if len(formats) > 1:
        named = " and ".join(f"'{each.field}'" for each in formats)
        raise bad_request(f"{named} each ask for a format; give one of them", formats[1].field, "invalid_value")
    return formats[0] if formats else None


def of_schema(field: str, schema: Any) -> AnswerFormat:
    """JSON that a schema describes. Raises ApiError (400) for what is no schema."""
    check_schema(field, schema)
    return AnswerFormat(field, lambda: grammar.of_json_schema(schema))


def _of_regex(field: str, regex: str) -> AnswerFormat:
    return AnswerFormat(field, lambda: grammar.of_regex(regex))


def _of_rules(field: str, rules: str) -> AnswerFormat:
    return AnswerFormat(field, lambda: grammar.of_rules(rules))


def _of_choices(field: str, choices: tuple[str, ...]) -> AnswerFormat:
    if not choices:
        raise bad_request(f"'{field}' is empty", field, "invalid_value")
    return AnswerFormat(field, lambda: grammar.of_choices(choices))


def _response_format(found: Mapping[str, Any]) -> AnswerFormat | None:
    """OpenAI's `text`, `json_object` and `json_schema`, and TensorRT-LLM's `regex` and `ebnf`."""
    given = found["response_format"]
    if given is None:
        return None
    kind = text("response_format.type", given.get("type"))
    keys = {"text": (), "json_object": ("schema",), "json_schema": ("json_schema",), "regex": ("regex",)}
    allowed = (keys | {"ebnf": ("ebnf",)}).get(kind)
    if allowed is None:
        wanted = "text, json_object, json_schema, regex or ebnf"
        raise bad_request(f"'response_format.type' must be {wanted}", "response_format.type", "invalid_value")
    for key in given.keys() - {"type", *allowed}:
        raise unsupported(f"response_format.{key[:64]}")
    match kind:
        case "text":
            return None
        case "json_object":
            return of_schema("response_format.schema", given.get("schema", ANY_OBJECT))
        case "json_schema":
            return _named_schema("response_format.json_schema", given.get("json_schema"))
        case "regex":
            return _of_regex("response_format.regex", text("response_format.regex", given.get("regex")))
    return _of_rules("response_format.ebnf", text("response_format.ebnf", given.get("ebnf")))


def _named_schema(field: str, value: Any) -> AnswerFormat:
    """OpenAI's wrapper. `strict` or not, the answer keeps to the schema."""
    rows = {"name": Field(text), "description": Field(text), "strict": Field(boolean), "schema": Field(mapping)}
    given = mapping(field, value)
    for key in given.keys() - rows.keys():
        raise unsupported(f"{field}.{key[:64]}")
    for key, row in rows.items():
        if given.get(key) is not None:
            row.read(f"{field}.{key}", given[key])
    if given.get("name") is None:
        raise bad_request(f"'{field}.name' is required", f"{field}.name", "missing_required_parameter")
    return of_schema(f"{field}.schema", given.get("schema") or {})


def _structured(found: Mapping[str, Any]) -> AnswerFormat | None:
    given = found["structured_outputs"]
    if given is None:
        return None
    rows = {
        "json": Field(lambda _, value: value),
        "regex": Field(text),
        "choice": Field(texts),
        "grammar": Field(text),
        "json_object": Field(boolean),
    }
    inner = {f"structured_outputs.{key}": value for key, value in given.items()}
    neutral = {"disable_any_whitespace": (False,), "disable_fallback": (False,), "whitespace_pattern": ()}
    read = read_fields(
        inner,
        {f"structured_outputs.{key}": row for key, row in rows.items()},
        {f"structured_outputs.{key}": values for key, values in neutral.items()},
    )
    if read.pop("structured_outputs.json_object"):
        read["structured_outputs.json"] = read["structured_outputs.json"] or ANY_OBJECT
    return _one_of("structured_outputs", {key.split(".")[1]: value for key, value in read.items()}, "{}.{}")


def _guided(found: Mapping[str, Any]) -> AnswerFormat | None:
    names = ("json", "regex", "choice", "grammar")
    if all(found[f"guided_{name}"] is None for name in names):
        return None
    return _one_of("guided", {name: found[f"guided_{name}"] for name in names}, "{}_{}")


def _one_of(prefix: str, values: Mapping[str, Any], spelling: str) -> AnswerFormat:
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) != 1:
        wanted = ", ".join(spelling.format(prefix, name) for name in values)
        raise bad_request(f"give exactly one of {wanted}", spelling.format(prefix, "json"), "invalid_value")
    name, value = next(iter(given.items()))
    field = spelling.format(prefix, name)
    if name == "json":
        return of_schema(field, _schema_text(field, value) if isinstance(value, str) else value)
    makers: dict[str, Callable[[str, Any], AnswerFormat]] = {"regex": _of_regex, "choice": _of_choices}
    return makers.get(name, _of_rules)(field, value)


def _schema_text(field: str, value: str) -> Any:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise bad_request(f"'{field}' is a string that is not JSON", field, "invalid_value") from None
    characters(field, found)
    return found
