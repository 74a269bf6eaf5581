"""From a checked call to its answer: tokenize, check against the model, hand to the bridge, collect or stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from specctl.errors import SpecctlError
from specctl.runtime.request import Emission, Request, SamplingParams
from specctl.server.answers import DONE, Answer, speculative_metrics, sse
from specctl.server.api_error import ApiError, bad_request
from specctl.server.bridge import Bridge, ClientGone, Stream
from specctl.server.engine_port import TargetPort
from specctl.server.formats import AnswerFormat
from specctl.server.messages import Message, Prompt
from specctl.server.options import ServerOptions
from specctl.server.protocol import DEFAULT_COMPLETION_TOKENS, GenerationCall
from specctl.server.tools import ToolUse, no_parser

SURELY_FINE = 16  # characters a token: shorter texts are not worth asking the vocabulary
NORMALIZED = 4  # times shorter than what was sent, at most, are the texts that tokenizers normalize
CLIENT_GONE_STATUS = 499  # nginx's number for it; nobody receives it, the log shows it
_Result = TypeVar("_Result")


class Service:
    """What the routes need of the model: its tokenizer, its limits and the bridge to the engine."""

    def __init__(self, target: TargetPort, bridge: Bridge, options: ServerOptions, num_speculative_tokens: int) -> None:
        self.target = target
        self.bridge = bridge
        self.options = options
        self._k = num_speculative_tokens
        self._longest: int | None = None  # bytes of the longest token, once somebody asked
        # One thread: tokenizing must not hold up the event loop, and tokenizers dislike several threads at once.
        self._tokenizer = ThreadPoolExecutor(1, thread_name_prefix="specctl-tokenizer")

    def close(self) -> None:
        """Release the tokenizer's thread."""
        self._tokenizer.shutdown(wait=False, cancel_futures=True)

    async def off_loop(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run tokenizer work beside the event loop. Raises ApiError (400) where the tokenizer refuses."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._tokenizer, work, *arguments)
        except SpecctlError as exc:
            raise bad_request(exc.message) from None

    def check_model(self, name: str | None) -> None:
        """Raises ApiError (404) when another model is asked for than the one that is served."""
        if name is not None and name not in self.options.model_names:
            served = ", ".join(self.options.model_names)
            message = f"the model '{name[:100]}' does not exist; this server has: {served}"
            raise ApiError(404, message, param="model", code="model_not_found")

    async def encode(self, prompt: Prompt, field: str, special: bool = True, tools: ToolUse | None = None) -> list[int]:
        """Token ids of a prompt, all inside the vocabulary. Raises ApiError (400)."""
        if isinstance(prompt, str):
            await self._check_size(len(prompt), field)
            return await self.off_loop(self.target.encode, prompt, special)
        if prompt and isinstance(prompt[0], dict):
            return await self._encode_chat(prompt, tools)
        ids: list[int] = prompt  # type: ignore[assignment]
        self.check_vocabulary(ids, field)
        return ids

    async def _encode_chat(self, messages: list[Message], tools: ToolUse | None) -> list[int]:
        if not self.target.has_chat_template:
            raise bad_request("this model has no chat template; use /v1/completions", "messages", "no_chat_template")
        if tools and tools.choice == "auto" and not tools.named and not self.target.writes_tool_calls:
            raise no_parser(self.options.model_names[0])
        await self._check_size(sum(len(message["content"]) for message in messages), "messages")
        # With tool_choice none the model does not hear of the tools.
        shown = tools.tools if tools and (tools.named or tools.choice != "none") else ()
        return await self.off_loop(self.target.encode_chat, messages, shown)

    async def _check_size(self, size: int, field: str) -> None:
        """Raises ApiError (400) for a text of `size` characters that cannot fit, before it holds up the tokenizer."""
        context = self.options.max_model_len
        if size <= SURELY_FINE * context:
            return
        most = NORMALIZED * context * await self.off_loop(self._longest_token)
        if size > most:
            message = f"'{field}' has {size} characters; a context of {context} tokens holds {most} at the very most"
            raise bad_request(message, field, "context_length_exceeded")

    def _longest_token(self) -> int:
        if self._longest is None:
            self._longest = max(len(self.target.token_bytes(token)) for token in range(self.target.vocab_size))
        return self._longest

    async def _echo(self, call: GenerationCall, prompt: Prompt) -> str:
        if not call.echo:
            return ""
        if isinstance(prompt, str):
            return prompt
        return await self.off_loop(self.target.decode, prompt, False)

    def check_vocabulary(self, ids: Sequence[int], field: str) -> None:
        """Raises ApiError (400) for an id that the model does not have."""
        if ids and max(ids) >= self.target.vocab_size:
            message = f"'{field}' holds token id {max(ids)}; the vocabulary has {self.target.vocab_size} entries"
            raise bad_request(message, field, "invalid_value")

    async def start(self, call: GenerationCall, arrival: float) -> tuple[Answer, Stream]:
        """Check the call against the model and hand it to the engine. Raises ApiError."""
        self.check_model(call.model)
        # Asked before the work of tokenizing, and again by `submit`.
        self.bridge.check_open(call.num_choices)
        self._check_ids(call)
        field = "messages" if call.chat else "prompt"
        prompts = [await self.encode(prompt, field, call.add_special_tokens, call.tools) for prompt in call.prompts]
        if call.truncate_prompt_tokens is not None:
            prompts = [ids[-call.truncate_prompt_tokens :] for ids in prompts]
        sampling = await self._sampling(call)
        samplings = [self._limited(call, sampling, len(ids), field) for ids in prompts]
        echoes = [await self._echo(call, prompt) for prompt in call.prompts]
        answer = Answer(call, self.options.model_names[0], prompts, echoes, self.target.token_bytes)
        requests = []
        for choice in range(call.num_choices):
            prompt = choice // call.n
            own = call.sampling_for(choice, samplings[prompt])
            requests.append(Request(f"{answer.id}-{choice}", list(prompts[prompt]), own, self.options.keep_steps))
        return answer, self.bridge.submit(requests, arrival, call.n)

    def _check_ids(self, call: GenerationCall) -> None:
        for field in ("stop_token_ids", "allowed_token_ids"):
            self.check_vocabulary(getattr(call.sampling, field), field)
        self.check_vocabulary([token for token, _ in call.sampling.logit_bias], "logit_bias")

    async def _sampling(self, call: GenerationCall) -> SamplingParams:
        """The options with what the tokenizer has to say about them."""
        words: list[tuple[int, ...]] = []
        if call.bad_words:
            words = await self.off_loop(_spellings, self.target, call.bad_words)
        grammar = await self.off_loop(_grammar, self.target, call.format) if call.format else None
        return replace(call.sampling, bad_words=tuple(words), grammar=grammar)

    def _limited(self, call: GenerationCall, sampling: SamplingParams, length: int, field: str) -> SamplingParams:
        limit = self._max_tokens(call, length, field)
        if sampling.min_tokens > limit:
            message = f"'min_tokens' is {sampling.min_tokens}; this answer may have {limit}"
            raise bad_request(message, "min_tokens", "invalid_value")
        return replace(sampling, max_tokens=limit)

    def _max_tokens(self, call: GenerationCall, length: int, field: str) -> int:
        """How many tokens this prompt's answers may have. Raises ApiError (400) when there is no room."""
        context = self.options.max_model_len
        room = context - length
        if length == 0:
            raise bad_request(f"'{field}' has no tokens; at least one is needed", field, "invalid_value")
        if room < 1:
            message = (
                f"this model's context is {context} tokens, prompt and answer together; "
                f"'{field}' has {length}, it may have {context - 1}"
            )
            raise bad_request(message, field, "context_length_exceeded")
        if call.max_tokens is None:
            return room if call.chat else min(room, DEFAULT_COMPLETION_TOKENS)
        if call.scoring:
            return 1  # the engine always takes a step; what it says is not shown
        if call.max_tokens > room:
            message = (
                f"this model's context is {context} tokens, prompt and answer together; '{field}' has {length} and "
                f"'{call.max_tokens_field}' asks for {call.max_tokens}, which makes {length + call.max_tokens}; "
                f"{room} would fit"
            )
            raise bad_request(message, call.max_tokens_field, "context_length_exceeded")
        return call.max_tokens

    def metrics_of(self, answer: Answer) -> dict[str, Any] | None:
        """`metrics` for an answer with one choice, where the operator switched it on."""
        stats = answer.choices[0].stats
        wanted = self.options.per_request_metrics != "none" and self.options.speculative
        if not wanted or len(answer.choices) != 1 or stats is None:
            return None
        return speculative_metrics(stats, self._k)


def _spellings(target: TargetPort, words: Sequence[str]) -> list[tuple[int, ...]]:
    """The tokens of each word, at the beginning of a text and behind a blank, as vLLM bans them."""
    found: dict[tuple[int, ...], None] = {}
    for word in words:
        for spelling in (word.lstrip(), " " + word.lstrip()):
            if ids := target.encode(spelling, False):
                found[tuple(ids)] = None
    return list(found)


def _grammar(target: TargetPort, wanted: AnswerFormat) -> str:
    """The grammar of a format. Raises ApiError (400) that names what the library lacks."""
    try:
        grammar = wanted.make()
        wrong = target.check_grammar(grammar)
    except SpecctlError as exc:
        wrong = exc.message
    if wrong:
        raise bad_request(f"'{wanted.field}' cannot be followed: {wrong}", wanted.field, "unsupported_schema")
    return grammar


async def respond(
    service: Service, call: GenerationCall, arrival: float, receive: Receive, seen: dict[str, Any]
) -> Response:
    """Answer a call. `receive` tells when the client hangs up; `seen` collects figures for the log.

    A stream's headers are sent when its first tokens are there, so that what is refused until then has its own status.
    """
    answer, stream = await service.start(call, arrival)
    seen["answer"] = answer.id
    seen["prompt_tokens"] = answer.usage()["prompt_tokens"]
    watcher = asyncio.create_task(_hang_up_when_gone(receive, stream))
    try:
        if call.stream:
            events = aiter(stream)
            return EventStream(service, answer, stream, events, await anext(events), watcher, seen)
        response = await _whole(service, answer, stream, seen)
    except ClientGone:
        response = Response(status_code=CLIENT_GONE_STATUS)
    except BaseException:
        # Also when this task is cancelled: nothing may run on for nobody.
        watcher.cancel()
        stream.cancel()
        raise
    watcher.cancel()
    return response


async def _hang_up_when_gone(receive: Receive, stream: Stream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.hang_up()


async def _whole(service: Service, answer: Answer, stream: Stream, seen: dict[str, Any]) -> Response:
    async for index, emission in stream:
        answer.take(index, emission)
    _note_end(answer, seen)
    return JSONResponse(answer.whole(service.metrics_of(answer)))


def _note_end(answer: Answer, seen: dict[str, Any]) -> None:
    seen["output_tokens"] = answer.usage()["completion_tokens"]
    seen["finish"] = ",".join(choice.finish_reason or "cut" for choice in answer.choices)


class EventStream(Response):
    """The answer as server-sent events, the first of which is already here."""

    media_type = "text/event-stream"

    def __init__(
        self,
        service: Service,
        answer: Answer,
        stream: Stream,
        events: AsyncIterator[tuple[int, Emission]],
        first: tuple[int, Emission],
        watcher: asyncio.Task[None],
        seen: dict[str, Any],
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._service, self._answer, self._stream = service, answer, stream
        self._events, self._first, self._watcher, self._seen = events, first, watcher, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events; abort the requests when the client goes or this task is cancelled."""
        del scope, receive  # the watcher listens to `receive` already
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for chunk in self._chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ClientGone:
            self._seen["status"] = CLIENT_GONE_STATUS
        finally:
            self._watcher.cancel()
            self._stream.cancel()
            _note_end(self._answer, self._seen)

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            yield self._take(*self._first)
            async for index, emission in self._events:
                yield self._take(index, emission)
        except ApiError as exc:
            # The status line is gone; clients look for an event with `error`.
            yield sse(exc.body()) + DONE
            return
        if self._answer.call.include_usage:
            yield self._answer.usage_event(self._service.metrics_of(self._answer))
        yield DONE

    def _take(self, index: int, emission: Emission) -> bytes:
        return b"".join(self._answer.events(index, emission))
