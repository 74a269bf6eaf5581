"""What a step takes: measured for the batch sizes and draft lengths that ran, worked out for those that did not."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

# Measurements that are kept of each batch size and length.
_KEPT = 31
# A measurement beyond so many times the usual one is a pause of the machine; it counts as no more than that.
_PAUSE = 3.0
# Batch sizes this near to a measured one, or between two that are `_BRACKET` apart, behave like those.
_NEAR, _BRACKET = 1.5, 4.0


class StepCosts:
    """Seconds of a step by batch size and draft length k.

    What runs for the first time is slow (kernels are chosen, memory is fetched), so the first measurement of each pair
    counts only where nothing else tells.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], float] = {}
        self._times: dict[tuple[int, int], deque[float]] = {}
        self._usual: dict[int, dict[int, float]] = {}

    def add(self, size: int, k: int, seconds: float) -> None:
        """A step of ``size`` sequences that could draft ``k`` tokens each took ``seconds``."""
        if (size, k) not in self._first:
            self._first[size, k] = seconds
            return
        times = self._times.setdefault((size, k), deque(maxlen=_KEPT))
        times.append(seconds)
        self._usual.setdefault(size, {})[k] = usual(times)

    def count(self, size: int, k: int) -> int:
        """Measurements that count."""
        return len(self._times.get((size, k), ()))

    def is_told_by_others(self, size: int) -> bool:
        """Whether other batch sizes were measured at two lengths and lie so near that this one is like them."""
        others = [other for other in self._profiles() if other != size]
        below = max((other for other in others if other < size), default=0)
        above = min((other for other in others if other > size), default=0)
        if below and above and above <= _BRACKET * below:
            return True
        return any(other and max(other, size) <= _NEAR * min(other, size) for other in (below, above))

    def seconds(self, size: int, k: int) -> float | None:
        """T(size, k): measured; else between two measured lengths; else as the nearest batch size has it; else on the
        line through the two nearest measured lengths; else what it took the first time. None where nothing tells.
        """
        own = self._usual.get(size, {})
        if k in own:
            return own[k]
        between = own and min(own) < k < max(own)
        if not between and (borrowed := self._borrowed(size, k, own)) is not None:
            return borrowed
        return _on_line(own, k) if len(own) > 1 else self._first.get((size, k))

    def _profiles(self) -> list[int]:
        return [size for size, found in self._usual.items() if len(found) > 1]

    def _borrowed(self, size: int, k: int, own: dict[int, float]) -> float | None:
        """T of the nearest batch size that two lengths were measured at, scaled by what is known of this one."""
        others = [other for other in self._profiles() if other != size]
        if not others:
            return None
        there = self._usual[min(others, key=lambda other: abs(other - size))]
        wanted = there[k] if k in there else _on_line(there, k)
        if not own:
            return wanted
        anchor = min(own, key=lambda length: abs(length - k))
        return wanted * own[anchor] / (there[anchor] if anchor in there else _on_line(there, anchor))


def usual(times: Collection[float]) -> float:
    """The mean without pauses; the shortest of few."""
    if len(times) < 3:
        return min(times)
    most = _PAUSE * sorted(times)[len(times) // 4]
    return sum(min(each, most) for each in times) / len(times)


def _on_line(times: dict[int, float], k: int) -> float:
    """On the line through the nearest length on each side, or through the two nearest."""
    below = [length for length in times if length < k]
    above = [length for length in times if length > k]
    near = sorted(times, key=lambda length: abs(length - k))
    one, two = (max(below), min(above)) if below and above else near[:2]
    return max(times[one] + (times[two] - times[one]) * (k - one) / (two - one), 1e-9)
