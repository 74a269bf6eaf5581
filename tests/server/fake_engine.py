"""An engine and a target that keep the runtime's contract without a model: tokens are bytes, answers are known.

The answer to a prompt is `answer_text(prompt, seed)`, cut by max_tokens or a stop. Words in a prompt make things go
wrong: REFUSE (the engine does not take it), BUG (adding throws), FAIL (the request fails after a step), DIE (the step
throws).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specctl.errors import SpecctlError
from specctl.runtime.options import Counters
from specctl.runtime.request import Emission, Request
from specctl.runtime.stats import SpecStats

EOS = 256
VOCAB = 260


def answer_text(prompt: str, seed: int | None) -> str:
    """What the fake model says; at temperature 0 pass None."""
    return f"You said {len(prompt)} bytes, naïvely: {prompt[-12:]} ✓" + ("" if seed is None else f" #{seed}")


class FakeTarget:
    """Tokens are UTF-8 bytes; 256 is end of text."""

    vocab_size = VOCAB
    has_chat_template = True

    writes_tool_calls = False

    def encode(self, text: str, special: bool = True) -> list[int]:
        del special  # bytes have none
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b"</s>"

    def check_grammar(self, grammar: str) -> str | None:
        return "the fake engine follows none" if "REFUSE" in grammar else None

    def encode_chat(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        del tools  # it has no template that would show them
        if messages[0]["role"] == "assistant":
            raise SpecctlError("the chat template refuses these messages: the first must be from the user")
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>")

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        shown = b"".join(bytes([i]) if i < 256 else b"" if skip_special_tokens else b"</s>" for i in ids)
        return shown.decode("utf-8", "ignore")


@dataclass
class _Running:
    request: Request
    output: list[int]  # all that it will say, EOS last
    done: int = 0
    sent: str = ""
    stats: SpecStats = field(default_factory=SpecStats)


class FakeEngine:
    """Emits up to k + 1 tokens a step and request; of the drafts in a step every second is accepted, in turn."""

    lossless = True

    def __init__(self, k: int = 0, max_num_seqs: int = 4, step_s: float = 0.0) -> None:
        self.num_speculative_tokens = k
        self.max_num_seqs = max_num_seqs
        self.step_s = step_s
        self.stats = SpecStats()
        self.counters = Counters()
        self.waiting: list[_Running] = []
        self.running: list[_Running] = []
        self.aborted: list[str] = []
        self.requests: list[Request] = []
        self.most_running = 0

    @property
    def num_running(self) -> int:
        return len(self.running)

    @property
    def num_waiting(self) -> int:
        return len(self.waiting)

    @property
    def kv_usage(self) -> float:
        return len(self.running) / self.max_num_seqs

    def add(self, request: Request) -> None:
        prompt = FakeTarget().decode(request.prompt_token_ids)
        if "REFUSE" in prompt:
            raise SpecctlError("this prompt is refused")
        if "BUG" in prompt:
            raise ValueError("secret detail")
        sampling = request.sampling
        text = answer_text(prompt, None if sampling.temperature == 0 else sampling.seed)
        output = list(text.encode()) * (50 if sampling.ignore_eos else 1)
        self.requests.append(request)
        output = output[: sampling.max_tokens] if sampling.ignore_eos else [*output, EOS]
        stats = SpecStats(steps=[] if request.keep_steps else None)
        self.waiting.append(_Running(request, output, stats=stats))

    def abort(self, request_id: str) -> bool:
        self.aborted.append(request_id)
        before = len(self.running) + len(self.waiting)
        self.running = [r for r in self.running if r.request.id != request_id]
        self.waiting = [r for r in self.waiting if r.request.id != request_id]
        return len(self.running) + len(self.waiting) < before

    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def step(self) -> list[Emission]:
        time.sleep(self.step_s)
        while self.waiting and len(self.running) < self.max_num_seqs:
            self.running.append(self.waiting.pop(0))
        self.most_running = max(self.most_running, len(self.running))
        emissions = [self._advance(r) for r in list(self.running)]
        self.running = [r for r in self.running if r.done >= 0]
        return emissions

    def _advance(self, r: _Running) -> Emission:
        prompt = FakeTarget().decode(r.request.prompt_token_ids)
        if "DIE" in prompt:
            raise RuntimeError("secret detail")
        if "FAIL" in prompt and r.done:
            r.done = -1
            return Emission(r.request.id, [], "", finish_reason="error", error="secret detail")
        block = r.output[r.done : r.done + self._accepted(r) + 1]
        return self._take(r, block)

    def _accepted(self, r: _Running) -> int:
        if r.done == 0 or not self.num_speculative_tokens:
            return 0
        accepted = r.stats.num_drafts % (self.num_speculative_tokens + 1)
        for stats in (r.stats, self.stats):
            stats.record(self.num_speculative_tokens, accepted)
        return accepted

    def _take(self, r: _Running, block: list[int]) -> Emission:
        sampling = r.request.sampling
        taken: list[int] = []
        for token in block:
            taken.append(token)
            before = r.output[: r.done + len(taken)]
            text = FakeTarget().decode(before)
            hit = next((s for s in sampling.stop if s in text), None)
            if hit is not None:
                return self._end(r, taken, text[: text.index(hit)], "stop", hit)
            if token in sampling.stop_token_ids:
                return self._end(r, taken, FakeTarget().decode(before[:-1]), "stop", token)
            if token == EOS:
                return self._end(r, taken, text, "stop", None)
            if len(before) >= sampling.max_tokens:
                return self._end(r, taken, text, "length", None)
        r.done += len(taken)
        held = max((len(s) for s in sampling.stop), default=1) - 1
        final = text[: len(text) - held] if held else text
        new, r.sent = final[len(r.sent) :], max(final, r.sent, key=len)
        return Emission(r.request.id, taken, new)

    def _end(self, r: _Running, taken: list[int], text: str, reason: str, stop: str | int | None) -> Emission:
        r.done = -1
        return Emission(r.request.id, taken, text[len(r.sent) :], reason, stop, r.stats)
