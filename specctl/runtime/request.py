"""What goes into the engine and what comes out of it: plain data, no tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specctl.runtime.stats import SpecStats

MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class SamplingParams:
    """How one request picks its tokens and when it ends.

    ``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 are off. ``max_tokens`` counts new tokens;
    before ``min_tokens`` of them neither a stop token nor a stop string ends the output. ``logit_bias``: (token id,
    what is added to its logit); ``allowed_token_ids``: nothing else, where given; ``bad_words``: token sequences that
    may not appear; ``grammar``: what the output keeps to (see `specctl.runtime.grammar`). ``logprobs``: how many
    alternatives each token reports, 0 its own alone, None nothing; ``prompt_logprobs``: the same of the prompt.
    ``include_stop``: the stop string or token stays in the text; ``skip_special_tokens``: special tokens do not show.
    Raises ValueError, naming the field, when a value is out of its range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    allowed_token_ids: tuple[int, ...] = ()
    bad_words: tuple[tuple[int, ...], ...] = ()
    grammar: str | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    include_stop: bool = False
    skip_special_tokens: bool = True

    def __post_init__(self) -> None:
        _require(math.isfinite(self.temperature) and self.temperature >= 0, "temperature", self.temperature, ">= 0")
        _require(self.top_k >= 0, "top_k", self.top_k, ">= 0 (0 is off)")
        _require(0 < self.top_p <= 1, "top_p", self.top_p, "in (0, 1]")
        _require(0 <= self.min_p <= 1, "min_p", self.min_p, "in [0, 1]")
        _require(self.seed is None or abs(self.seed) <= MAX_SEED, "seed", self.seed, "a 64-bit integer")
        _require(self.max_tokens >= 1, "max_tokens", self.max_tokens, ">= 1")
        _require(0 <= self.min_tokens <= self.max_tokens, "min_tokens", self.min_tokens, "in [0, max_tokens]")
        for name in ("presence_penalty", "frequency_penalty"):
            _require(abs(getattr(self, name)) <= 2, name, getattr(self, name), "in [-2, 2]")
        positive = math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0
        _require(positive, "repetition_penalty", self.repetition_penalty, "> 0")
        _require(all(self.stop), "stop", self.stop, "non-empty strings")
        _require(all(self.bad_words), "bad_words", self.bad_words, "non-empty")
        for name in ("logprobs", "prompt_logprobs"):
            _require((getattr(self, name) or 0) >= 0, name, getattr(self, name), ">= 0")

    @property
    def greedy(self) -> bool:
        """Whether the next token is the argmax."""
        return self.temperature == 0


def _require(holds: bool, field: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{field} is {value!r}; it must be {wanted}")


@dataclass(frozen=True)
class Request:
    """One prompt (token ids) with its sampling options; ``id`` is the caller's and must be unique while it runs.
    ``keep_steps``: its statistics tell each draft by itself.
    """

    id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams
    keep_steps: bool = False


@dataclass(frozen=True)
class TokenLogprobs:
    """Natural log probability of ``token`` where it stands and its ``rank`` (1 is the most likely); ``top``: the most
    likely tokens there with theirs, best first.
    """

    token: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Emission:
    """What one step produced for one request.

    ``token_ids`` holds the new tokens, a stop token included. ``text`` is the newly final text: it never ends inside a
    UTF-8 character and never holds a stop string or what could still become one. ``finish_reason``, ``stop_reason``
    (the stop string or stop token id; None for EOS) and ``stats`` come with the last emission of a request.
    ``error``: why a request ends with ``finish_reason`` error, ``refused``: because of what it asked for itself.
    ``logprobs``: one entry a token, where the request asked for them; ``prompt_logprobs``, with the first emission: one
    entry a prompt token, None for the first. ``num_cached``: prompt tokens that a prefix cache held;
    ``started``: when the request got its slot, as `time.monotonic` counts.
    """

    request_id: str
    token_ids: list[int]
    text: str
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    stats: SpecStats | None = None
    error: str | None = None
    refused: bool = False
    logprobs: list[TokenLogprobs] | None = None
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    num_cached: int = 0
    started: float | None = None
