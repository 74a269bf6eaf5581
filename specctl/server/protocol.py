"""Request bodies, read and checked: from JSON to a `GenerationCall` (or tokenizer call), or to an ApiError.

Nothing here knows the engine or the web framework. Prompt text is never repeated in an error message.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from specctl.runtime.request import SamplingParams
from specctl.server.api_error import ApiError, bad_request
from specctl.server.field_rows import (
    CHAT,
    CHAT_NEUTRAL,
    COMPLETION,
    COMPLETION_NEUTRAL,
    DETOKENIZE,
    SAMPLING,
    TOKENIZE,
    TOKENIZE_NEUTRAL,
)
from specctl.server.fields import Field, boolean, characters, read_fields
from specctl.server.formats import AnswerFormat, answer_format
from specctl.server.messages import Message, Prompt
from specctl.server.tools import ToolUse, read_tools

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # half a pair, or a whole one
DEFAULT_COMPLETION_TOKENS = 16  # OpenAI's default for /v1/completions; a chat answer may fill the context


@dataclass(frozen=True)
class GenerationCall:
    """One body of /v1/chat/completions or /v1/completions.

    `prompts`: texts, token ids or conversations. `max_tokens` None: as many as the context has room for.
    `sampling` holds everything but `max_tokens` and what needs the tokenizer: `bad_words` and the grammar; its seed is
    None where the client gave none. `echo`: the prompt's text stands before the answer's; with `max_tokens` 0
    (`scoring`) nothing else does.
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
    tokens_as_ids: bool = False
    echo: bool = False
    add_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None
    prompt_logprobs: bool = False
    bad_words: tuple[str, ...] = ()
    format: AnswerFormat | None = None
    tools: ToolUse | None = None

    @property
    def num_choices(self) -> int:
        """Answers to make: prompts times n."""
        return len(self.prompts) * self.n

    @property
    def scoring(self) -> bool:
        """Whether the prompt alone is asked about."""
        return self.max_tokens == 0

    def sampling_for(self, choice: int, sampling: SamplingParams) -> SamplingParams:
        """``sampling`` for the choice with this index: its own seed, the same one in every run of a seeded call.

        The seed depends on the place among a prompt's n choices only, so a prompt answers alike alone and in a batch.
        """
        return replace(sampling, seed=choice_seed(self.sampling.seed, choice % self.n))


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
        # Not by `json.loads` itself: it takes bytes that stand for halves of surrogate pairs.
        written = raw.decode(json.detect_encoding(raw))
        body = json.loads(written, parse_constant=_no_constant)
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
    if _SURROGATE.search(written):
        characters("", body)
    return body


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_chat(body: Mapping[str, Any]) -> GenerationCall:
    """A body of /v1/chat/completions."""
    found = read_fields(body, CHAT, CHAT_NEUTRAL)
    prompt = _required(found, "messages")
    limit, name = found["max_tokens"], "max_tokens"
    newer = found["max_completion_tokens"]
    if newer is not None:
        if limit not in (None, newer):
            raise bad_request("'max_tokens' and 'max_completion_tokens' differ; give one of them", "max_tokens")
        limit, name = newer, "max_completion_tokens"
    top = found["top_logprobs"]
    if top and not found["logprobs"]:
        raise bad_request("'top_logprobs' needs 'logprobs': true", "top_logprobs", "invalid_value")
    call = _call(found, True, (prompt,), limit, name, (top or 0) if found["logprobs"] else None)
    return _with_tools(call, read_tools(found))


def _with_tools(call: GenerationCall, tools: ToolUse | None) -> GenerationCall:
    if tools is None:
        return call
    forced = tools.format
    if call.format is not None and tools.choice != "none":
        message = (
            f"'{call.format.field}' and 'tools' each ask for a format; set 'tool_choice' to none, or leave one out"
        )
        raise bad_request(message, "tools", "invalid_value")
    return _ending(replace(call, tools=tools, format=forced or call.format))


def read_completion(body: Mapping[str, Any]) -> GenerationCall:
    """A body of /v1/completions."""
    found = read_fields(body, COMPLETION, COMPLETION_NEUTRAL)
    given = _required(found, "prompt")
    if found["max_tokens"] == 0 and not found["echo"]:
        raise bad_request("'max_tokens' is 0; without 'echo' it must be at least 1", "max_tokens", "invalid_value")
    call = _call(found, False, given, found["max_tokens"], "max_tokens", found["logprobs"])
    if call.echo and found["logprobs"] is not None:
        # OpenAI's echo shows the log probabilities of the prompt's tokens too.
        most = max(found["logprobs"], found["prompt_logprobs"] or 0)
        call = replace(call, sampling=replace(call.sampling, prompt_logprobs=most))
    if call.stream and call.sampling.prompt_logprobs is not None:
        field = "prompt_logprobs" if call.prompt_logprobs else "logprobs"
        raise bad_request(f"'{field}' about a prompt cannot be streamed", field, "unsupported_parameter")
    return call


def _call(
    found: Mapping[str, Any],
    chat: bool,
    given: tuple[Prompt, ...],
    limit: int | None,
    limit_field: str,
    logprobs: int | None,
) -> GenerationCall:
    include_usage, continuous = stream_options(found["stream_options"], found["stream"])
    call = GenerationCall(
        chat=chat,
        model=found["model"],
        prompts=given,
        sampling=_sampling(found, logprobs, limit),
        max_tokens=limit,
        max_tokens_field=limit_field,
        n=found["n"],
        stream=found["stream"],
        include_usage=include_usage,
        continuous_usage=continuous,
        return_token_ids=found["return_token_ids"],
        tokens_as_ids=found["return_tokens_as_token_ids"],
        echo=found.get("echo", False),
        add_special_tokens=found.get("add_special_tokens", True),
        truncate_prompt_tokens=found["truncate_prompt_tokens"],
        prompt_logprobs=found["prompt_logprobs"] is not None,
        bad_words=found["bad_words"],
        format=answer_format(found),
    )
    if call.stream and call.prompt_logprobs:
        raise bad_request("'prompt_logprobs' cannot be streamed", "prompt_logprobs", "unsupported_parameter")
    return _ending(call)


def _ending(call: GenerationCall) -> GenerationCall:
    """The call, which can end. Raises ApiError (400) where its format has an end and it asks for none."""
    if call.format and call.sampling.ignore_eos:
        message = f"'ignore_eos' and '{call.format.field}' exclude each other: behind its format an answer can only end"
        raise bad_request(message, "ignore_eos", "invalid_value")
    return call


def _sampling(found: Mapping[str, Any], logprobs: int | None, limit: int | None) -> SamplingParams:
    given = {name: found[name] for name in SAMPLING}
    given["include_stop"] = given.pop("include_stop_str_in_output")
    # The real limit comes later, from the prompt's length; this one is as wide as what asks for it.
    most = max(found["min_tokens"], 1) if limit is None else max(limit, 1)
    try:
        return SamplingParams(**given, logprobs=logprobs, max_tokens=most)
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
    if found["continuous_usage_stats"] and not found["include_usage"]:
        message = "'stream_options.continuous_usage_stats' needs 'stream_options.include_usage': true"
        raise bad_request(message, "stream_options.continuous_usage_stats", "invalid_value")
    return found["include_usage"], found["continuous_usage_stats"]


@dataclass(frozen=True)
class TokenizeCall:
    """A body of /tokenize: a text, or a conversation."""

    model: str | None
    prompt: str | list[Message]
    add_special_tokens: bool
    return_token_strs: bool


def read_tokenize(body: Mapping[str, Any]) -> TokenizeCall:
    """A body of /tokenize: `prompt` or `messages`."""
    found = read_fields(body, TOKENIZE, TOKENIZE_NEUTRAL)
    given = [found[name] for name in ("prompt", "messages") if found[name] is not None]
    if len(given) != 1:
        raise bad_request("give either 'prompt' or 'messages'", "prompt", "missing_required_parameter")
    return TokenizeCall(found["model"], given[0], found["add_special_tokens"], found["return_token_strs"])


def read_detokenize(body: Mapping[str, Any]) -> tuple[str | None, list[int]]:
    """A body of /detokenize: `(model, token ids)`."""
    found = read_fields(body, DETOKENIZE, {})
    return found["model"], _required(found, "tokens")
