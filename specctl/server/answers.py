"""The bodies of answers, in OpenAI's shape with vLLM's additions (`stop_reason`, `token_ids`, `metrics`)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specctl.runtime.request import Emission, TokenLogprobs
from specctl.runtime.stats import SpecStats
from specctl.server.protocol import GenerationCall
from specctl.server.shapes import LogprobShapes, Offsets, TokenBytes
from specctl.server.tools import CallReader, Delta

DONE = b"data: [DONE]\n\n"


@dataclass
class Choice:
    """What one choice has produced so far. `echo`: the text that stands before it."""

    index: int
    prompt_token_ids: Sequence[int]
    echo: str = ""
    reader: CallReader | None = None
    deltas: list[Delta] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: Sequence[TokenLogprobs | None] | None = None
    num_tokens: int = 0
    num_cached: int = 0
    offsets: Offsets = field(default_factory=Offsets)
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    stats: SpecStats | None = None

    def take(self, emission: Emission) -> list[Delta]:
        """Count an emission; what it adds to the message."""
        self.num_tokens += len(emission.token_ids)
        self.num_cached = emission.num_cached
        if emission.prompt_logprobs is not None:
            self.prompt_logprobs = emission.prompt_logprobs
        if emission.finish_reason is not None:
            self.finish_reason = emission.finish_reason
            self.stop_reason = emission.stop_reason
            self.stats = emission.stats
        return self._deltas(emission)

    def _deltas(self, emission: Emission) -> list[Delta]:
        if self.reader is None:
            return [{"content": emission.text}] if emission.text else []
        found = self.reader.push(emission.text)
        if self.finish_reason is not None:
            found += self.reader.end()
            self.finish_reason = self.reader.finish_reason(self.finish_reason)
        return found

    def keep(self, emission: Emission, deltas: Sequence[Delta]) -> None:
        """Hold for an answer in one piece."""
        self.deltas += deltas
        self.token_ids += emission.token_ids
        self.logprobs += emission.logprobs or []

    @property
    def content(self) -> str:
        """All text so far."""
        return "".join(delta.get("content", "") for delta in self.deltas)

    def message(self) -> dict[str, Any]:
        """The message of a chat answer in one piece."""
        calls: list[dict[str, Any]] = []
        for delta in self.deltas:
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(calls):
                    calls.append({key: call[key] for key in ("id", "type", "function")})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        # OpenAI's has no content where there are calls alone.
        message = {"role": "assistant", "content": self.content or (None if calls else ""), "refusal": None}
        return message | ({"tool_calls": calls} if calls else {})


class Answer:
    """Builds the bodies for one call: the whole answer, or the events of its stream.

    `prompts`: token ids of each prompt; `echoes`: the texts that stand before the answers, one a prompt.
    """

    def __init__(
        self,
        call: GenerationCall,
        model: str,
        prompts: Sequence[Sequence[int]],
        echoes: Sequence[str],
        token_bytes: TokenBytes,
    ) -> None:
        self.call = call
        self.id = f"{'chatcmpl' if call.chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())
        self.model = model
        self.prompts = prompts
        self._shapes = LogprobShapes(token_bytes, call.tokens_as_ids)
        self.choices = [
            Choice(i, prompts[i // call.n], echoes[i // call.n], call.tools.reader() if call.tools else None)
            for i in range(call.num_choices)
        ]

    def take(self, index: int, emission: Emission) -> None:
        """Keep what one choice produced, for `whole`."""
        choice = self.choices[index]
        choice.keep(emission, choice.take(emission))

    def whole(self, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer in one piece, after every choice has finished."""
        kind = "chat.completion" if self.call.chat else "text_completion"
        body = self._frame(kind, [self._whole_choice(choice) for choice in self.choices])
        body["usage"] = self.usage()
        if self.call.chat and self.call.return_token_ids:
            body["prompt_token_ids"] = list(self.prompts[0])
        if self.call.chat and self.call.prompt_logprobs:
            body["prompt_logprobs"] = self._shapes.prompt(self.choices[0].prompt_logprobs or [])
        return body | ({"metrics": metrics} if metrics else {})

    def _whole_choice(self, choice: Choice) -> dict[str, Any]:
        scoring = self.call.scoring
        tokens = [] if scoring else choice.token_ids
        start: dict[str, Any] = (
            {"message": choice.message()}
            if self.call.chat
            else {"text": choice.echo + ("" if scoring else choice.content)}
        )
        body = {"index": choice.index, **start, "logprobs": self._whole_logprobs(choice, tokens)}
        body |= {"finish_reason": choice.finish_reason, "stop_reason": choice.stop_reason}
        if self.call.return_token_ids:
            body["token_ids"] = tokens
        if not self.call.chat and self.call.return_token_ids:
            body["prompt_token_ids"] = list(choice.prompt_token_ids)
        if not self.call.chat and self.call.prompt_logprobs:
            body["prompt_logprobs"] = self._shapes.prompt(choice.prompt_logprobs or [])
        return body

    def _whole_logprobs(self, choice: Choice, tokens: Sequence[int]) -> dict[str, Any] | None:
        if self.call.sampling.logprobs is None:
            return None
        entries = choice.logprobs[: len(tokens)]
        if self.call.chat:
            return self._shapes.chat(entries)
        if self.call.echo:
            prompt = choice.prompt_logprobs or []
            return self._shapes.completion([*prompt, *entries], [*choice.prompt_token_ids, *tokens], Offsets())
        return self._shapes.completion(entries, tokens, Offsets())

    def events(self, index: int, emission: Emission) -> list[bytes]:
        """The stream's events for one emission."""
        choice = self.choices[index]
        first = choice.num_tokens == 0
        deltas = choice.take(emission)
        found = [self._role(choice)] if first and self.call.chat else []
        if first and choice.echo:
            found.append(self._chunk(choice, {"content": choice.echo}, {}, first))
            first = False
        extra = {} if self.call.scoring else self._extra(choice, emission)
        if not deltas and extra and not emission.finish_reason:
            deltas = [{}]
        for delta in [] if self.call.scoring else deltas:
            found.append(self._chunk(choice, delta, extra, first))
            extra, first = self._nothing_more(), False
        if emission.finish_reason:
            found.append(self._chunk(choice, {}, extra, first, last=True))
        return found

    def _nothing_more(self) -> dict[str, Any]:
        return {"token_ids": []} if self.call.return_token_ids else {}

    def _extra(self, choice: Choice, emission: Emission) -> dict[str, Any]:
        """What an emission's first event says beside its text."""
        extra: dict[str, Any] = {}
        if self.call.return_token_ids:
            extra["token_ids"] = list(emission.token_ids)
        if emission.logprobs is not None:
            if self.call.chat:
                extra["logprobs"] = self._shapes.chat(emission.logprobs)
            else:
                extra["logprobs"] = self._shapes.completion(emission.logprobs, emission.token_ids, choice.offsets)
        return extra

    def _role(self, choice: Choice) -> bytes:
        body = {"index": choice.index, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
        extra: dict[str, Any] = {}
        if self.call.return_token_ids:
            extra["prompt_token_ids"] = list(choice.prompt_token_ids)
        return self._event([body | {"finish_reason": None}], extra)

    def _chunk(self, choice: Choice, delta: Delta, extra: dict[str, Any], first: bool, last: bool = False) -> bytes:
        """An event with a piece of the message, or the last one of a choice."""
        start: dict[str, Any] = {"delta": delta} if self.call.chat else {"text": delta.get("content", "")}
        body = {"index": choice.index, **start, "logprobs": None}
        body["finish_reason"] = choice.finish_reason if last else None
        if last:
            body["stop_reason"] = choice.stop_reason
        if self.call.return_token_ids and first and not self.call.chat:
            body["prompt_token_ids"] = list(choice.prompt_token_ids)
        return self._event([body | self._nothing_more() | extra], {})

    def _event(self, choices: list[dict[str, Any]], extra: dict[str, Any]) -> bytes:
        kind = "chat.completion.chunk" if self.call.chat else "text_completion"
        body = self._frame(kind, choices) | extra
        if self.call.include_usage:
            body["usage"] = self.usage() if self.call.continuous_usage else None
        return sse(body)

    def usage_event(self, metrics: Mapping[str, Any] | None) -> bytes:
        """The last event before `[DONE]` of a stream that asked for its usage: no choices, all tokens."""
        kind = "chat.completion.chunk" if self.call.chat else "text_completion"
        body = self._frame(kind, []) | {"usage": self.usage()}
        return sse(body | ({"metrics": metrics} if metrics else {}))

    def usage(self) -> dict[str, Any]:
        """Tokens: each prompt once, whatever n is; all choices' new tokens, stop tokens included. `cached_tokens`: what
        the prompts' first choices found in the prefix cache.
        """
        prompt = sum(len(ids) for ids in self.prompts)
        completion = 0 if self.call.scoring else sum(choice.num_tokens for choice in self.choices)
        cached = sum(choice.num_cached for choice in self.choices[:: self.call.n])
        found = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return found | {"prompt_tokens_details": {"cached_tokens": cached}}

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def sse(body: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def speculative_metrics(stats: SpecStats, k: int) -> dict[str, Any]:
    """`metrics` of one request as vLLM 0.29 and later return it (steps are those that had a draft)."""
    histogram = stats.acceptance_length_histogram
    found: dict[str, Any] = {
        "mean_acceptance_length": stats.mean_acceptance_length or 1.0,
        "draft_acceptance_rate": stats.acceptance_rate or 0.0,
        "acceptance_histogram": histogram + [0] * (k + 1 - len(histogram)),
        "num_spec_steps": stats.num_drafts,
        "num_accepted_draft_tokens": stats.num_accepted_tokens,
        "num_draft_tokens": stats.num_draft_tokens,
        "num_spec_tokens": k,
    }
    if stats.steps:  # as vLLM: kept at the level "detailed", and not there before the first draft
        found["per_step_accepted"] = [accepted for _, accepted in stats.steps]
        found["per_step_drafted"] = [drafted for drafted, _ in stats.steps]
    return {"speculative_decoding": found}
