"""`--speculation auto`: the draft length whose tokens a second are highest by what was measured.

Both factors are seen by a running engine anyway: how many drafted tokens stand, and what a step takes. A step of n
sequences that draft k tokens each gives n * E(k) tokens in T(n, k) seconds. What is measured outlives requests; a
bounded share of the time goes into looking at other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence as Many

from specctl.runtime.step_costs import StepCosts

# Sequences that the estimate of one place's acceptance looks back over, about.
_MEMORY = 400.0
# Before anything was seen, a drafted token stands so often; the guess weighs as much as so many sequences.
_GUESS, _WEIGHT = 0.7, 2.0
# A new batch size is first seen without a draft and with a short one, so often each.
_FIRST_LENGTH, _FIRST_LOOKS = 2, 2
# Plain steps that the first looks may lose, beyond one that counts of each.
_FIRST_LOSS = 2.0
# The share of the whole time that later looks may lose against the best known length.
_LOOK_SHARE = 0.01
# What was lost and taken long ago no longer counts: gains of yesterday are no reason to lose today.
_FADES = 0.998
# Steps between two looks: more with each that changed nothing. Without a draft nothing else shows what it would give.
_LOOK_SOON, _LOOK_LATE = 8, 64
# Steps of a batch size after which its best length is worked out anew.
_THINK_EVERY = 8
# A length must promise this much more than the one in use to replace it.
_BETTER_BY = 1.01


class StandingTokens:
    """How often a drafted token stands, place by place: of those sequences whose tokens before it all stood."""

    def __init__(self, most: int) -> None:
        self._reached = [0.0] * (most + 1)
        self._stood = [0.0] * (most + 1)

    def add(self, k: int, accepted: Many[int]) -> None:
        """A step with drafts of ``k`` tokens, of which ``accepted`` stood of each sequence."""
        keep = max(0.0, 1 - len(accepted) / _MEMORY)
        for place in range(1, k + 1):
            reached = sum(count >= place - 1 for count in accepted)
            self._reached[place] = self._reached[place] * keep + reached
            self._stood[place] = self._stood[place] * keep + sum(count >= place for count in accepted)

    def tokens(self, k: int) -> float:
        """E(k): tokens that a sequence gets from a step of ``k`` drafted ones."""
        total, chance, share = 1.0, 1.0, _GUESS
        for place in range(1, k + 1):
            # What was seldom reached is guessed to be as the place before it.
            share = (self._stood[place] + _WEIGHT * share) / (self._reached[place] + _WEIGHT)
            chance *= share
            total += chance
        return total


class Measured:
    """The length, 0 to ``most``, that emits the most tokens a second; a `specctl.runtime.draft_length.DraftLength`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._standing = StandingTokens(most)
        self._costs = StepCosts()
        self._current: dict[int, int] = {}
        self._until_thought: dict[int, int] = {}
        self._total = self._lost = 0.0
        self._since_look, self._until_look = 0, _LOOK_SOON
        self._looked: dict[tuple[int, int], int] = {}
        self._again: dict[int, int] = {}
        self._steps = 0

    def choose(self, batch_size: int) -> int:
        if batch_size not in self._current:
            first = self._first_look(batch_size)
            if first is not None:
                return first
        best = self._settled(batch_size)
        if (again := self._again.pop(batch_size, None)) is not None:
            return again
        wait = self._until_look if best else _LOOK_SOON
        return self._look(batch_size, best) if self._since_look >= wait else best

    def observe(self, k: int, accepted: Many[int], seconds: float) -> None:
        """Learn from a step; see `specctl.runtime.draft_length.DraftLength`."""
        size = len(accepted)
        best = self._current.get(size)
        self._steps += 1
        self._since_look = self._since_look + 1 if k == best else 0
        self._looked[size, k] = self._steps
        self._total = self._total * _FADES + seconds
        self._lost *= _FADES
        if k != best:
            self._lost += self._loss(size, k, best or 0) or 0.0
        self._standing.add(k, accepted)
        self._costs.add(size, k, seconds)
        if best is not None and k != best:
            self._saw(size, k)
        if self._costs.count(size, k) <= _FIRST_LOOKS:
            self._until_thought[size] = 0  # what was guessed of this length is known now

    def _saw(self, size: int, k: int) -> None:
        """A look is over, unless it was the first at this length, which does not count."""
        if self._costs.count(size, k) == 0:
            self._again[size] = k
        else:
            self._until_look = min(2 * self._until_look, _LOOK_LATE)

    def _first_look(self, size: int) -> int | None:
        """The next length to see of a new batch size; None where enough was seen, or like batch sizes tell."""
        if self._costs.is_told_by_others(size):
            return None
        for k in (0, min(_FIRST_LENGTH, self._most)):
            seen, plain = self._costs.count(size, k), self._costs.seconds(size, 0)
            if seen == 0 or (seen < _FIRST_LOOKS and plain and (self._loss(size, k, 0) or 0.0) <= _FIRST_LOSS * plain):
                return k
        return None

    def _rate(self, size: int, k: int) -> float:
        """Tokens a second; 0 where nothing is known of the time."""
        seconds = self._costs.seconds(size, k)
        return size * self._standing.tokens(k) / seconds if seconds else 0.0

    def _loss(self, size: int, k: int, best: int) -> float | None:
        """Seconds that a step of ``k`` takes beyond those of ``best`` for as many tokens; None where nothing tells."""
        seconds, rate = self._costs.seconds(size, k), self._rate(size, best)
        if seconds is None or rate == 0:
            return None
        return max(0.0, seconds - size * self._standing.tokens(k) / rate)

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
        if best != current:
            self._until_look = _LOOK_SOON
        self._current[size] = best
        return best

    def _look(self, size: int, best: int) -> int:
        """The candidate that was longest not looked at, where the loss is bearable; else ``best``."""
        near = (best + 1, best - 1, 0, self._most, (best + self._most + 1) // 2)
        allowed = _LOOK_SHARE * self._total - self._lost
        candidates = {
            k for k in near if 0 <= k <= self._most and k != best and (self._loss(size, k, best) or 0.0) <= allowed
        }
        return min(candidates, key=lambda k: (self._looked.get((size, k), 0), abs(k - best)), default=best)
