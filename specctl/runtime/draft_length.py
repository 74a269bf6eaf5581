"""How many tokens a step may draft: as the setting says, by a schedule over batch sizes, or by what was measured.

The last is `specctl.runtime.measured_length`.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

from specctl.runtime.measured_length import Measured
from specctl.spec.config import ScheduleStep, SpecDecodeConfig


class DraftLength(Protocol):
    """``choose``: tokens that each of ``batch_size`` decoding sequences may draft in this step. ``observe``: what the
    step gave, drafted tokens that stand of each sequence, and how long it took; steps with prompt tokens in them are
    not told.
    """

    def choose(self, batch_size: int) -> int: ...
    def observe(self, k: int, accepted: Many[int], seconds: float) -> None: ...


class Fixed:
    """Always ``k``."""

    def __init__(self, k: int) -> None:
        self._k = k

    def choose(self, batch_size: int) -> int:  # noqa: ARG002 (the protocol's)
        return self._k

    def observe(self, k: int, accepted: Many[int], seconds: float) -> None:
        """Nothing to learn."""


class Scheduled(Fixed):
    """k by batch size: vLLM's num_speculative_tokens_per_batch_size, TensorRT-LLM's draft_len_schedule.

    A length beyond ``k`` counts as ``k``. Batch sizes that no range holds take the last range before them (vLLM fills
    its table so); before the first range it is ``k``.
    """

    def __init__(self, steps: Many[ScheduleStep], k: int) -> None:
        super().__init__(k)
        self._steps = sorted(steps, key=lambda step: step.first)

    def choose(self, batch_size: int) -> int:
        begun = [step for step in self._steps if step.first <= batch_size]
        return min(begun[-1].num_speculative_tokens, self._k) if begun else self._k


def make_draft_length(spec: SpecDecodeConfig, k: int, *, measured: bool) -> DraftLength:
    """The draft length of ``spec``, whose proposer reaches ``k`` tokens deep."""
    if measured:
        return Measured(k)
    if spec.schedule:
        return Scheduled(spec.schedule, k)
    if spec.max_concurrency is not None:
        return Scheduled([ScheduleStep(1, spec.max_concurrency, k), ScheduleStep(spec.max_concurrency + 1, None, 0)], k)
    return Fixed(k)
