"""The bodies of answers, in OpenAI's shape with vLLM's additions (`stop_reason`, `token_ids`, `metrics`)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specctl.runtime.request import Emission
from specctl.runtime.stats import SpecStats
from specctl.server.protocol import GenerationCall

DONE = b"data: [DONE]\n\n"


@dataclass
class Choice:
    """What one choice has produced so far."""

    index: int
    prompt_token_ids: Sequence[int]
    echo: str = ""
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    num_tokens: int = 0
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    stats: SpecStats | None = None

    def take(self, emission: Emission, keep: bool) -> None:
        """Count an emission; its text and ids are kept for an answer in one piece only."""
        self.num_tokens += len(emission.token_ids)
        if keep:
            self.text.append(emission.text)
            self.token_ids.extend(emission.token_ids)
        if emission.finish_reason is not None:
            self.finish_reason = emission.finish_reason
            self.stop_reason = emission.stop_reason
            self.stats = emission.stats


class Answer:
    """Builds the bodies for one call: the whole answer, or the events of its stream.

    `prompts`: token ids of each prompt; `echoes`: the texts that stand before the answers, one a prompt.
    """

    def __init__(
        self, call: GenerationCall, model: str, prompts: Sequence[Sequence[int]], echoes: Sequence[str]
    ) -> None:
        self.call = call
        self.id = f"{'chatcmpl' if call.chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())
        self.model = model
        self.prompts = prompts
        self.choices = [Choice(i, prompts[i // call.n], echoes[i // call.n]) for i in range(call.num_choices)]

    def whole(self, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answer in one piece, after every choice has finished."""
        kind = "chat.completion" if self.call.chat else "text_completion"
        body = self._frame(kind, [self._whole_choice(choice) for choice in self.choices])
        body["usage"] = self.usage()
        if self.call.chat and self.call.return_token_ids:
            body["prompt_token_ids"] = list(self.prompts[0])
        return body | ({"metrics": metrics} if metrics else {})

    def _whole_choice(self, choice: Choice) -> dict[str, Any]:
        content = choice.echo + "".join(choice.text)
        if self.call.chat:
            start: dict[str, Any] = {"message": {"role": "assistant", "content": content, "refusal": None}}
        else:
            start = {"text": content}
        body = {"index": choice.index, **start, "logprobs": None}
        body |= {"finish_reason": choice.finish_reason, "stop_reason": choice.stop_reason}
        if self.call.return_token_ids:
            body["token_ids"] = choice.token_ids
            if not self.call.chat:
                body["prompt_token_ids"] = list(choice.prompt_token_ids)
        return body

    def events(self, choice: Choice, emission: Emission) -> list[bytes]:
        """The stream's events for one emission, `choice.take(emission)` done before."""
        first = choice.num_tokens == len(emission.token_ids)
        found = [self._role(choice)] if first and self.call.chat else []
        if first and choice.echo:
            found.append(self._chunk(choice, choice.echo, [], first))
            first = False
        shown = list(emission.token_ids) if self.call.return_token_ids else []
        if emission.text or (shown and not emission.finish_reason):
            found.append(self._chunk(choice, emission.text, shown, first))
            shown, first = [], False
        if emission.finish_reason:
            found.append(self._chunk(choice, None, shown, first))
        return found

    def _role(self, choice: Choice) -> bytes:
        body = {"index": choice.index, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
        extra: dict[str, Any] = {}
        if self.call.return_token_ids:
            extra["prompt_token_ids"] = list(choice.prompt_token_ids)
        return self._event([body | {"finish_reason": None}], extra)

    def _chunk(self, choice: Choice, text: str | None, shown: Sequence[int], first: bool) -> bytes:
        """An event with new text, or the last one of a choice (`text` None)."""
        last = text is None
        if self.call.chat:
            start: dict[str, Any] = {"delta": {} if last else {"content": text}}
        else:
            start = {"text": text or ""}
        body = {"index": choice.index, **start, "logprobs": None}
        body["finish_reason"] = choice.finish_reason if last else None
        if last:
            body["stop_reason"] = choice.stop_reason
        if self.call.return_token_ids:
            body["token_ids"] = list(shown)
            if first and not self.call.chat:
                body["prompt_token_ids"] = list(choice.prompt_token_ids)
        return self._event([body], {})

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

    def usage(self) -> dict[str, int]:
        """Tokens: each prompt once, whatever n is; all choices' new tokens, stop tokens included."""
        prompt = sum(len(ids) for ids in self.prompts)
        completion = sum(choice.num_tokens for choice in self.choices)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def sse(body: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def speculative_metrics(stats: SpecStats, k: int) -> dict[str, Any]:
    """`metrics` of one request as vLLM 0.29 and later return it (steps are those that had a draft)."""
    histogram = stats.acceptance_length_histogram
    return {
        "speculative_decoding": {
            "mean_acceptance_length": stats.mean_acceptance_length or 1.0,
            "draft_acceptance_rate": stats.acceptance_rate or 0.0,
            "acceptance_histogram": histogram + [0] * (k + 1 - len(histogram)),
            "num_spec_steps": stats.num_drafts,
            "num_accepted_draft_tokens": stats.num_accepted_tokens,
            "num_draft_tokens": stats.num_draft_tokens,
            "num_spec_tokens": k,
        }
    }
