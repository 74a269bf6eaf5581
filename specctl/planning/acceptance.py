"""How many tokens a step yields: the formulas of speculative decoding, and a model of falling acceptance.

Definitions as in `specctl explain metrics`: the mean acceptance length L(k) counts the bonus token and lies in
[1, k + 1]; the acceptance rate is accepted / drafted = (L(k) - 1) / k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specctl.errors import UsageError

# The chance of the next drafted token falls by this factor from place to place. Fitted on the 87 published chains of
# SpecForge's SpecBundle with lengths for k = 3, 5 and 7: the median error of L(7) out of L(3) is 0.1 %, against 5.3 %
# for a constant chance.
FALL = 0.97


def expected_length(alpha: float, k: int) -> float:
    """Tokens a step if each drafted token is accepted with probability `alpha` (Leviathan et al., equation 1)."""
    return float(k + 1) if alpha >= 1 else (1 - alpha ** (k + 1)) / (1 - alpha)


def walltime_factor(alpha: float, k: int, cost: float, verify: float = 1.0) -> float:
    """Speed-up of a step with k drafted tokens.

    `cost`: time of a draft step over that of a target step; `verify`: time of a target step over k + 1 rows over that
    of one row (Leviathan et al., theorem 3.8, with `verify` = 1)."""
    return expected_length(alpha, k) / (k * cost + verify)


def best_length(alpha: float, cost: float, limit: int = 64) -> tuple[int, float]:
    """The k up to `limit` with the best `walltime_factor`, and that factor; (0, 1.0) where none is above 1."""
    k, factor = max(((k, walltime_factor(alpha, k, cost)) for k in range(1, limit + 1)), key=lambda each: each[1])
    return (k, factor) if factor > 1 else (0, 1.0)


def falling_length(alpha: float, k: int, fall: float = FALL) -> float:
    """L(k) where the chance of the first place is `alpha` and falls by `fall` a place."""
    length = chance = 1.0
    for place in range(k):
        chance *= min(alpha * fall**place, 1.0)
        length += chance
    return length


def solve_alpha(k: int, length: float, fall: float = 1.0) -> float:
    """The chance of the first place that gives L(k) = `length`; with `fall` 1, the constant chance.

    Raises `UsageError` for a length outside [1, k + 1]."""
    if not 1 <= length <= k + 1:
        raise UsageError(
            f"a mean acceptance length of {length:g} is not possible with k = {k}: it lies between 1 and {k + 1}",
            help="give the length together with the k it was measured at",
        )
    low, high = 0.0, 1.0 / fall ** max(k - 1, 0)  # at the upper end every place is sure
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling_length(middle, k, fall) < length else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Acceptance:
    """Mean acceptance lengths by k, and where they come from. Empty `lengths`: not known."""

    lengths: Mapping[int, float]
    source: str

    @property
    def known(self) -> bool:
        """Whether there is any figure."""
        return bool(self.lengths)

    def length(self, k: int) -> float:
        """L(k): the figure where there is one, else the falling model through the nearest figure.

        Between two figures the model runs from the lower one, scaled so that it meets the upper one."""
        if k in self.lengths:
            return self.lengths[k]
        below = [each for each in self.lengths if each < k]
        above = [each for each in self.lengths if each > k]
        start = max(below) if below else min(above)
        alpha = solve_alpha(start, self.lengths[start], FALL)
        guess = falling_length(alpha, k)
        if not (below and above):
            return guess
        end = min(above)
        stretch = (self.lengths[end] - self.lengths[start]) / max(
            falling_length(alpha, end) - self.lengths[start], 1e-9
        )
        return self.lengths[start] + (guess - self.lengths[start]) * stretch


UNKNOWN = Acceptance({}, "unknown")


def from_rate(rate: float, k: int, source: str) -> Acceptance:
    """Out of an acceptance rate (accepted / drafted) measured with k drafted tokens a step."""
    if not 0 <= rate <= 1:
        raise UsageError(f"an acceptance rate of {rate:g} is not possible: it lies between 0 and 1")
    return Acceptance({k: 1 + rate * k}, source)


def from_length(length: float, k: int, source: str) -> Acceptance:
    """Out of a mean acceptance length measured with k drafted tokens a step."""
    solve_alpha(k, length)
    return Acceptance({k: length}, source)
