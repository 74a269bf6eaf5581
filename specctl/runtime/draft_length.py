"""How many tokens a step may draft: as the setting says, by a schedule over batch sizes, or by what was measured.

The best length follows from two things that a running engine sees anyway: how many drafted tokens stand, and what a
step takes. Per step of n sequences, drafting k gives n * E(k) tokens in T(n, k) seconds; `Measured` drafts the k whose
rate is highest, and spends a bounded share of the time on looking at others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Many
from statistics import median
from typing import Protocol

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


# Steps that the estimate of one place's acceptance looks back over, about.
_MEMORY = 400.0
# Measurements of a step's time that are kept for each batch size and length.
_KEPT_TIMES = 15
_FIRST_LOOKS = 2
# The share of the whole time that looks at other lengths may lose against the best known one.
_LOOK_SHARE = 0.015
# What was lost and taken long ago no longer counts: gains of yesterday are no reason to lose today.
_FADES = 0.998
# Steps between two looks while nothing changes.
_LOOK_EVERY = 8
# Steps of a batch size after which its best length is worked out anew.
_THINK_EVERY = 8
# A length must promise this much more than the one in use to replace it.
_BETTER_BY = 1.01


class Measured:
    """`--speculation auto`: the length, 0 to ``most``, that emits the most tokens a second by measured acceptance and
    measured times.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._stood = [0.0] * (most + 1)
        self._tried = [0.0] * (most + 1)
        self._times: dict[int, dict[int, deque[float]]] = {}
        self._typical: dict[int, dict[int, float]] = {}
        self._until_thought: dict[int, int] = {}
        self._early: dict[int, list[tuple[int, float]]] = {}
        self._current: dict[int, int] = {}
        self._total = self._lost = 0.0
        self._since_look = 0
        self._looked: dict[tuple[int, int], int] = {}
        self._steps = 0

    def choose(self, batch_size: int) -> int:
        for k in self._first_looks():
            if len(self._times.get(batch_size, {}).get(k, ())) < _FIRST_LOOKS and self._may_lose(batch_size, k):
                return k
        best = self._settled(batch_size)
        return self._look(batch_size, best) if self._since_look >= _LOOK_EVERY else best

    def observe(self, k: int, accepted: Many[int], seconds: float) -> None:
        """Learn from a step; see `DraftLength`."""
        size = len(accepted)
        best = self._current.get(size)
        self._steps += 1
        self._since_look = self._since_look + 1 if k == best else 0
        self._looked[size, k] = self._steps
        self._total = self._total * _FADES + seconds
        self._lost *= _FADES
        if best is None:
            self._early.setdefault(size, []).append((k, seconds))
        elif k != best:
            self._count_loss(size, best, k, seconds)
        times = self._times.setdefault(size, {}).setdefault(k, deque(maxlen=_KEPT_TIMES))
        times.append(seconds)
        self._typical.setdefault(size, {})[k] = median(times)
        for place in range(1, k + 1):
            keep = max(0.0, 1 - size / _MEMORY)
            self._tried[place] = self._tried[place] * keep + size
            self._stood[place] = self._stood[place] * keep + sum(count >= place for count in accepted)

    def _count_loss(self, size: int, best: int, k: int, seconds: float) -> None:
        """What a step took beyond what the best length takes for as many tokens as one of ``k`` gives on average."""
        self._lost += max(0.0, seconds - size * self._tokens(k) / self._rate(size, best))

    def _first_looks(self) -> tuple[int, ...]:
        """Half of what the setting asks for, and none at all; the whole is dear where the draft is bad."""
        return ((self._most + 1) // 2, 0)

    def _tokens(self, k: int) -> float:
        """E(k): tokens that a sequence gets from a step of ``k`` drafted ones."""
        total, chance, ratio = 1.0, 1.0, 1.0
        for place in range(1, k + 1):
            if self._tried[place] > 0:
                before, chance = chance, min(chance, self._stood[place] / self._tried[place])
                ratio = chance / before if before else 0.0
            else:
                chance *= ratio  # never tried: as likely as the place before it was
            total += chance
        return total

    def _seconds(self, size: int, k: int) -> float | None:
        """T(size, k): measured, or on the line through the two nearest measured lengths."""
        times = self._typical.get(size, {})
        if k in times:
            return times[k]
        if len(times) < 2:
            return self._borrowed(size, k, times)
        below = [length for length in times if length < k]
        above = [length for length in times if length > k]
        near = sorted(times, key=lambda length: abs(length - k))
        one, two = (max(below), min(above)) if below and above else near[:2]
        return max(times[one] + (times[two] - times[one]) * (k - one) / (two - one), 1e-9)

    def _borrowed(self, size: int, k: int, times: dict[int, float]) -> float | None:
        """From the nearest batch size that two lengths were measured at, scaled by what is known of this one."""
        full = [other for other, found in self._typical.items() if len(found) > 1 and other != size]
        if not full:
            return None
        near = min(full, key=lambda other: abs(other - size))
        wanted = self._seconds(near, k)
        known = next(iter(times), None)
        if wanted is None or known is None:
            return wanted
        there = self._seconds(near, known)
        return None if there is None else wanted * times[known] / there

    def _rate(self, size: int, k: int) -> float:
        """Tokens a second; 0 where nothing is known of the time."""
        seconds = self._seconds(size, k)
        return size * self._tokens(k) / seconds if seconds else 0.0

    def _settled(self, size: int) -> int:
        """The best length, worked out every few steps."""
        left = self._until_thought.get(size, 0)
        self._until_thought[size] = left - 1 if left else _THINK_EVERY - 1
        return self._current[size] if left else self._best(size)

    def _best(self, size: int) -> int:
        rates = {k: self._rate(size, k) for k in range(self._most + 1)}
        best = max(rates, key=lambda k: rates[k])
        current = self._current.get(size)
        if current is not None and rates[best] < rates[current] * _BETTER_BY:
            best = current
        self._current[size] = best
        for k, seconds in self._early.pop(size, ()):
            self._count_loss(size, best, k, seconds)
        return best

    def _look(self, size: int, best: int) -> int:
        """The candidate that was longest not looked at, where the loss is bearable; else ``best``."""
        near = (best + 1, best - 1, 0, self._most, (best + self._most + 1) // 2)
        candidates = {k for k in near if 0 <= k <= self._most and k != best and self._may_lose(size, k)}
        return min(candidates, key=lambda k: self._looked.get((size, k), 0), default=best)

    def _may_lose(self, size: int, k: int) -> bool:
        """Whether a step of ``k`` keeps the loss by looking within its share of the time."""
        best = self._current.get(size)
        seconds = self._seconds(size, k)
        if best is None or seconds is None or self._rate(size, best) == 0:
            return True
        loss = max(0.0, seconds - size * self._tokens(k) / self._rate(size, best))
        return self._lost + loss <= _LOOK_SHARE * self._total


def make_draft_length(spec: SpecDecodeConfig, k: int, *, measured: bool) -> DraftLength:
    """The draft length of ``spec``, whose proposer reaches ``k`` tokens deep."""
    if measured:
        return Measured(k)
    if spec.schedule:
        return Scheduled(spec.schedule, k)
    if spec.max_concurrency is not None:
        return Scheduled([ScheduleStep(1, spec.max_concurrency, k), ScheduleStep(spec.max_concurrency + 1, None, 0)], k)
    return Fixed(k)
