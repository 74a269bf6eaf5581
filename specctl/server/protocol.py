"""Request bodies, read and checked: from JSON to a `GenerationCall` (or tokenizer call), or to an ApiError.

Nothing here knows the engine or the web framework. Prompt text is never repeated in an error message.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from specctl.runtime.request import SamplingParams
from specctl.server.api_error import ApiError, bad_request
from specctl.server.fields import (
    CHAT_NEUTRAL,
    COMMON,
    COMPLETION_NEUTRAL,
    Field,
    at_least,
    boolean,
    mapping,
    read_fields,
    text,
    token_ids,
    unsupported,
    wrong_type,
)

DEFAULT_COMPLETION_TOKENS = 16  # OpenAI's default for /v1/completions; a chat answer may fill the context
MAX_PROMPTS = 1024
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_EMPTY_MESSAGE_PARTS = (
    "annotations",
    "audio",
    "function_call",
    "refusal",
    "tool_calls",
    "reasoning_content",
    "reasoning",
)

Message = dict[str, str]
Prompt = str | list[int] | list[Message]


@dataclass(frozen=True)
class GenerationCall:
    """One body of /v1/chat/completions or /v1/completions.

    `prompts`: texts, token ids or conversations. `max_tokens` None: as many as the context has room for.
    `sampling` holds everything but `max_tokens`; its seed is None where the client gave none. `echo`: the prompt's text
    stands before the answer's.
    """

    chat: bool
    model: str | None
    prompts: tuple[Prompt, ...]
    sampling: SamplingParams
    max_tokens: int | None
    max_tokens_field: str = "max_tokens"
    n: int = 1
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    return_token_ids: bool = False
    echo: bool = False

    @property
    def num_choices(self) -> int:
        """Answers to make: prompts times n."""
        return len(self.prompts) * self.n

    def sampling_for(self, choice: int, max_tokens: int) -> SamplingParams:
        """The options of the choice with this index: its own seed, the same one in every run of a seeded call.

        The seed depends on the place among a prompt's n choices only, so a prompt answers alike alone and in a batch.
        """
        return replace(self.sampling, seed=choice_seed(self.sampling.seed, choice % self.n), max_tokens=max_tokens)


def choice_seed(seed: int | None, index: int) -> int:
    """The seed of choice `index`: the client's own for the first, derived for the others; random without a seed."""
    if seed is None:
        return secrets.randbits(62)
    if index == 0:
        return seed
    digest = hashlib.blake2b(f"{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def parse_json(raw: bytes) -> dict[str, Any]:
    """The body as an object. Raises ApiError (400) for what is not JSON, not an object, or nested without end."""
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except RecursionError:
        raise bad_request("the body is nested too deeply", code="invalid_json") from None
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno}, column {exc.colno}"
        raise bad_request(f"the body is not valid JSON: {exc.msg} ({where})", code="invalid_json") from None
    except ValueError as exc:  # bad UTF-8, NaN, numbers of thousands of digits
        reason = "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc).split(";", 1)[0]
        raise bad_request(f"the body is not valid JSON: {reason}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object", code="invalid_json")
    return body


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_chat(body: Mapping[str, Any]) -> GenerationCall:
    """A body of /v1/chat/completions."""
    fields = {**COMMON, "messages": Field(messages), "max_completion_tokens": Field(at_least(1))}
    found = read_fields(body, fields, CHAT_NEUTRAL)
    prompt = _required(found, "messages")
    limit, name = found["max_tokens"], "max_tokens"
    newer = found["max_completion_tokens"]
    if newer is not None:
        if limit not in (None, newer):
            raise bad_request("'max_tokens' and 'max_completion_tokens' differ; give one of them", "max_tokens")
        limit, name = newer, "max_completion_tokens"
    return _call(found, True, (prompt,), limit, name)


def read_completion(body: Mapping[str, Any]) -> GenerationCall:
    """A body of /v1/completions."""
    fields = {**COMMON, "prompt": Field(prompts), "echo": Field(boolean, False)}
    found = read_fields(body, fields, COMPLETION_NEUTRAL)
    given = _required(found, "prompt")
    return _call(found, False, given, found["max_tokens"], "max_tokens")


def _call(
    found: Mapping[str, Any], chat: bool, given: tuple[Prompt, ...], limit: int | None, limit_field: str
) -> GenerationCall:
    include_usage, continuous = stream_options(found["stream_options"], found["stream"])
    return GenerationCall(
        chat=chat,
        model=found["model"],
        prompts=given,
        sampling=_sampling(found),
        max_tokens=limit,
        max_tokens_field=limit_field,
        n=found["n"],
        stream=found["stream"],
        include_usage=include_usage,
        continuous_usage=continuous,
        return_token_ids=found["return_token_ids"],
        echo=found.get("echo", False),
    )


def _sampling(found: Mapping[str, Any]) -> SamplingParams:
    names = ("temperature", "top_k", "top_p", "min_p", "seed", "stop", "stop_token_ids", "ignore_eos")
    try:
        return SamplingParams(**{name: found[name] for name in names})
    except ValueError as exc:
        # The runtime's messages start with the field's name.
        raise bad_request(str(exc), str(exc).split(" ", 1)[0], "invalid_value") from None


def _required(found: Mapping[str, Any], name: str) -> Any:
    if found[name] is None:
        raise bad_request(f"'{name}' is required", name, "missing_required_parameter")
    return found[name]


def stream_options(given: Mapping[str, Any] | None, stream: bool) -> tuple[bool, bool]:
    """`(include_usage, continuous_usage_stats)`; the option makes sense with `stream` only."""
    if given is None:
        return False, False
    if not stream:
        raise bad_request("'stream_options' is allowed only with 'stream': true", "stream_options", "invalid_value")
    inner = {"include_usage": Field(boolean, False), "continuous_usage_stats": Field(boolean, False)}
    try:
        found = read_fields(given, inner, {"include_obfuscation": (False,)})
    except ApiError as exc:
        raise bad_request(f"stream_options: {exc.message}", f"stream_options.{exc.param}", exc.code) from None
    return found["include_usage"], found["continuous_usage_stats"]


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
    """The conversation as the chat template wants it: role and text of each message."""
    if not isinstance(value, list):
        raise wrong_type(name, "an array of messages", value)
    if not value:
        raise bad_request(f"'{name}' is empty", name, "invalid_value")
    return [_message(f"{name}[{index}]", item) for index, item in enumerate(value)]


def _message(name: str, value: Any) -> Message:
    fields = mapping(name, value)
    for key in fields.keys() - {"role", "content", "name"}:
        # A client that sends an earlier answer back sends these too, empty.
        if key not in _EMPTY_MESSAGE_PARTS or fields[key] not in (None, [], ""):
            raise unsupported(f"{name}.{key[:64]}")
    role = text(f"{name}.role", fields.get("role"))
    if role not in _ROLES:
        wanted = ", ".join(_ROLES)
        raise bad_request(f"'{name}.role' must be one of {wanted}", f"{name}.role", "invalid_value")
    found = {"role": _ROLES[role], "content": _content(f"{name}.content", fields.get("content"))}
    # The participant's name is for the chat template, which may or may not show it.
    return found if fields.get("name") is None else found | {"name": text(f"{name}.name", fields["name"])}


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


@dataclass(frozen=True)
class TokenizeCall:
    """A body of /tokenize: a text, or a conversation."""

    model: str | None
    prompt: str | list[Message]


def read_tokenize(body: Mapping[str, Any]) -> TokenizeCall:
    """A body of /tokenize: `prompt` or `messages`."""
    fields = {"model": Field(text), "prompt": Field(text), "messages": Field(messages)}
    neutral: dict[str, tuple[Any, ...]] = {"add_special_tokens": (), "return_token_strs": (False,)}
    found = read_fields(body, fields, {**neutral, "add_generation_prompt": (True,), "continue_final_message": (False,)})
    given = [found[name] for name in ("prompt", "messages") if found[name] is not None]
    if len(given) != 1:
        raise bad_request("give either 'prompt' or 'messages'", "prompt", "missing_required_parameter")
    return TokenizeCall(found["model"], given[0])


def read_detokenize(body: Mapping[str, Any]) -> tuple[str | None, list[int]]:
    """A body of /detokenize: `(model, token ids)`."""
    found = read_fields(body, {"model": Field(text), "tokens": Field(token_ids)}, {})
    return found["model"], _required(found, "tokens")
