"""One streamed answer, read as vLLM's client reads it (vllm/benchmarks/lib/endpoint_request_func.py).

First token: the first event with `choices`. Last token: the last such event. A chunk may carry several tokens, so their
number comes from `usage`, else from token ids, else from the tokenizer over the whole text, and is unknown otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from specctl.bench.candidates import MAX_K
from specctl.bench.records import Clock, Record
from specctl.bench.scrape import from_histogram

if TYPE_CHECKING:
    from specctl.runtime import SpecStats

CountTokens = Callable[[str], list[int]]
EVENTS = "text/event-stream"


class Answer:
    """Takes the bytes of an event stream and fills a record."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._rest = b""
        self._text: list[str] = []
        self._reply: list[str] = []
        self._ids_sent = False
        self._done = False
        record.counted = False

    def feed(self, data: bytes) -> None:
        """More bytes of the stream."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            line = line.strip()
            if line.startswith(b"data:"):
                self._event(line[5:].strip())

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._done = True
            return
        try:
            event = json.loads(data)
        except ValueError:
            self._fail("the server sent an event that is not JSON")
            return
        if not isinstance(event, dict):
            self._fail("the server sent an event that is no object")
        elif event.get("error"):
            self._fail(f"the server said: {said(event)}")
        else:
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        record = self._record
        choices = event.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            record.chunk(self._clock())
            self._choice(choices[0])
        usage = event.get("usage")
        if isinstance(usage, dict):
            record.told_tokens = _number(usage.get("completion_tokens"), record.told_tokens)
            record.told_prompt_tokens = _number(usage.get("prompt_tokens"), record.told_prompt_tokens)
            details = usage.get("prompt_tokens_details")
            if isinstance(details, dict):
                record.cached_tokens = _number(details.get("cached_tokens"), record.cached_tokens)
        record.stats = request_counters(event) or record.stats

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else choice.get("text")
        self._reply += [text] if isinstance(text, str) else []
        if isinstance(delta, dict) and not text:
            text = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(text, str):
            self._text.append(text)
        ids = choice.get("token_ids")
        if isinstance(ids, list) and all(isinstance(each, int) for each in ids):
            self._ids_sent = True
            self._record.token_ids.extend(ids)
        self._record.finish_reason = choice.get("finish_reason") or self._record.finish_reason

    def _fail(self, why: str) -> None:
        self._record.error = self._record.error or why

    def end(self, tokenize: CountTokens | None, content_type: str = EVENTS) -> None:
        """The stream is over: what is missing makes the request fail, what is unknown stays unknown."""
        record = self._record
        if not record.failed and record.first_token_s is None and not self._done and content_type != EVENTS:
            self._fail(f"the server answered with {content_type}, not with a stream of events")
        record.text, record.reply = "".join(self._text), "".join(self._reply)
        if record.finish_reason is None and not (self._done and record.first_token_s is not None):
            self._fail("the stream ended before the answer did")
        if self._ids_sent:
            record.counted = True
        elif tokenize is not None and not record.failed:
            record.token_ids = tokenize(record.text)
            record.counted = True


def _number(value: object, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def said(body: object) -> str:
    """The message of an error body, at most 200 characters."""
    inner = body.get("error", body.get("message", body)) if isinstance(body, dict) else body
    text = inner.get("message", inner) if isinstance(inner, dict) else inner
    return str(text)[:200]


def request_counters(event: Mapping[str, Any]) -> SpecStats | None:
    """A request's own counters from an event: those of vLLM (and specctl), SGLang or TensorRT-LLM; None without."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    metrics, extension = event.get("metrics"), event.get("sglext")
    vllm = metrics.get("speculative_decoding") if isinstance(metrics, dict) else choice.get("speculative_decoding")
    sglang = extension.get("spec_tokens_details") if isinstance(extension, dict) else None
    try:
        if isinstance(vllm, dict):
            drafted = vllm.get("num_draft_tokens", vllm.get("total_draft_tokens"))
            return from_histogram(_histogram(vllm["acceptance_histogram"]), int(drafted or 0))
        if isinstance(sglang, dict):
            histogram, calls = sglang["spec_correct_drafts_histogram"], int(sglang["spec_verify_ct"])
            return from_histogram(_histogram(histogram), int(sglang["spec_num_proposed_drafts"]), calls)
    except (KeyError, TypeError, ValueError):
        return None
    return None


def _histogram(found: Any) -> list[int]:
    """Dense list or sparse mapping with text keys, as a list."""
    if isinstance(found, dict):
        counts = {int(place): int(count) for place, count in found.items()}
        if counts and not 0 <= min(counts) <= max(counts) <= MAX_K:
            raise ValueError("no draft is that long")
        return [counts.get(place, 0) for place in range(max(counts, default=-1) + 1)]
    return [int(count) for count in found]
