"""Prompts and conversations, as the tokenizer and the chat template want them."""

from __future__ import annotations

import json
from typing import Any

from specctl.server.api_error import bad_request
from specctl.server.fields import characters, mapping, text, token_ids, unsupported, wrong_type

MAX_PROMPTS = 1024
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
# A client that sends an earlier answer back sends these too, empty.
_EMPTY_PARTS = ("annotations", "audio", "function_call", "refusal", "tool_calls", "reasoning_content", "reasoning")

Message = dict[str, Any]
Prompt = str | list[int] | list[Message]


def prompts(name: str, value: Any) -> tuple[Prompt, ...]:
    """A text, token ids, an array of texts or an array of token-id arrays."""
    if isinstance(value, str):
        return (text(name, value),)
    if not isinstance(value, list):
        raise wrong_type(name, "a string, an array of strings, token ids or arrays of token ids", value)
    if not value:
        raise bad_request(f"'{name}' is empty", name, "invalid_value")
    if type(value[0]) is int:
        return (token_ids(name, value),)
    if len(value) > MAX_PROMPTS:
        raise bad_request(f"'{name}' holds {len(value)} prompts; at most {MAX_PROMPTS} are allowed", name)
    read = text if isinstance(value[0], str) else token_ids
    return tuple(read(f"{name}[{index}]", item) for index, item in enumerate(value))


def messages(name: str, value: Any) -> list[Message]:
    """The conversation as the chat template wants it: role, text, calls of tools and their results."""
    if not isinstance(value, list):
        raise wrong_type(name, "an array of messages", value)
    if not value:
        raise bad_request(f"'{name}' is empty", name, "invalid_value")
    return [_message(f"{name}[{index}]", item) for index, item in enumerate(value)]


def _message(name: str, value: Any) -> Message:
    fields = mapping(name, value)
    role = text(f"{name}.role", fields.get("role"))
    if role not in _ROLES:
        wanted = ", ".join(_ROLES)
        raise bad_request(f"'{name}.role' must be one of {wanted}", f"{name}.role", "invalid_value")
    own = {"assistant": {"tool_calls"}, "tool": {"tool_call_id"}}.get(role, set())
    for key in fields.keys() - {"role", "content", "name"} - own:
        if key not in _EMPTY_PARTS or fields[key] not in (None, [], ""):
            raise unsupported(f"{name}.{key[:64]}")
    found: Message = {"role": _ROLES[role]}
    calls = _tool_calls(f"{name}.tool_calls", fields.get("tool_calls")) if role == "assistant" else []
    if calls:
        found["tool_calls"] = calls
    # An answer that calls tools may have no text.
    empty = bool(calls) and fields.get("content") is None
    found["content"] = "" if empty else _content(f"{name}.content", fields.get("content"))
    for key in ("name", "tool_call_id"):
        if fields.get(key) is not None:
            # The participant's name is for the chat template, which may or may not show it.
            found[key] = text(f"{name}.{key}", fields[key])
    return found


def _tool_calls(name: str, value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type(name, "an array of tool calls", value)
    return [_tool_call(f"{name}[{index}]", item) for index, item in enumerate(value)]


def _tool_call(name: str, value: Any) -> dict[str, Any]:
    """Templates want the arguments as an object, the API has them as its JSON text."""
    call = mapping(name, value)
    function = mapping(f"{name}.function", call.get("function"))
    arguments = text(f"{name}.function.arguments", function.get("arguments"))
    try:
        read = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        where = f"{name}.function.arguments"
        raise bad_request(f"'{where}' must be the JSON text of an object", where, "invalid_value")
    characters(f"{name}.function.arguments", read)
    found = {"name": text(f"{name}.function.name", function.get("name")), "arguments": read}
    return {"id": text(f"{name}.id", call.get("id")), "type": "function", "function": found}


def _content(name: str, value: Any) -> str:
    if isinstance(value, str):
        return text(name, value)
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of text parts", value)
    return "\n".join(_part(f"{name}[{index}]", item) for index, item in enumerate(value))


def _part(name: str, value: Any) -> str:
    part = mapping(name, value)
    if part.get("type") != "text":
        raise unsupported(f"{name}.type", "this model reads text parts only")
    for key in part.keys() - {"type", "text"}:
        raise unsupported(f"{name}.{key[:64]}")
    return text(f"{name}.text", part.get("text"))
