"""What goes into the engine and what comes out of it: plain data, no tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specctl.runtime.stats import SpecStats

MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class SamplingParams:
    """How one request picks its tokens and when it ends.

    ``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 are off. ``max_tokens`` counts new tokens.
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

    def __post_init__(self) -> None:
        _require(math.isfinite(self.temperature) and self.temperature >= 0, "temperature", self.temperature, ">= 0")
        _require(self.top_k >= 0, "top_k", self.top_k, ">= 0 (0 is off)")
        _require(0 < self.top_p <= 1, "top_p", self.top_p, "in (0, 1]")
        _require(0 <= self.min_p <= 1, "min_p", self.min_p, "in [0, 1]")
        _require(self.seed is None or abs(self.seed) <= MAX_SEED, "seed", self.seed, "a 64-bit integer")
        _require(self.max_tokens >= 1, "max_tokens", self.max_tokens, ">= 1")
        _require(all(self.stop), "stop", self.stop, "non-empty strings")

    @property
    def greedy(self) -> bool:
        """Whether the next token is the argmax."""
        return self.temperature == 0


def _require(holds: bool, field: str, value: object, wanted: str) -> None:
    if not holds:
        raise ValueError(f"{field} is {value!r}; it must be {wanted}")


@dataclass(frozen=True)
class Request:
    """One prompt (token ids) with its sampling options; ``id`` is the caller's and must be unique while it runs."""

    id: str
    prompt_token_ids: list[int]
    sampling: SamplingParams


@dataclass(frozen=True)
class Emission:
    """What one step produced for one request.

    ``token_ids`` holds the new tokens, a stop token included. ``text`` is the newly final text: it never ends inside a
    UTF-8 character and never holds a stop string or what could still become one. ``finish_reason``, ``stop_reason``
    (the stop string or stop token id; None for EOS) and ``stats`` come with the last emission of a request.
    """

    request_id: str
    token_ids: list[int]
    text: str
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    stats: SpecStats | None = None
    error: str | None = None
