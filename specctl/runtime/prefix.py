"""Prefix caching: what free slots still hold, and who can begin with it.

A sequence that leaves its slot leaves its keys and values there. One that comes takes the lowest free slot, so that
the slots in use stay close together, and the longest beginning that any slot holds, running ones too, is copied into
it. What lay in that slot moves to one that is empty or holds something older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Tokens
from dataclasses import dataclass

from specctl.runtime.scheduler import BLOCK, blocks

# Copies the first entries of a slot into another, in the caches of target and draft; answers how many of them a
# sequence there can begin with.
Copy = Callable[[int, int, int], int]


@dataclass(frozen=True)
class Kept:
    """``tokens`` that a free slot holds, and when it was left."""

    tokens: list[int]
    stamp: int


class PrefixCache:
    """What the free slots hold. ``release`` is told of a slot whose content is worth nothing any more."""

    def __init__(self, copy: Copy, release: Callable[[int], None]) -> None:
        self._copy = copy
        self._release = release
        self._kept: dict[int, Kept] = {}
        self._stamp = 0
        self.num_queries = 0
        self.num_hits = 0

    @property
    def num_blocks(self) -> int:
        """Blocks that are held for nobody yet."""
        return sum(blocks(len(kept.tokens)) for kept in self._kept.values())

    def keep(self, slot: int, tokens: list[int]) -> None:
        """A sequence left ``slot`` with these tokens computed."""
        if len(tokens) >= BLOCK:
            self._stamp += 1
            self._kept[slot] = Kept(tokens, self._stamp)
        else:
            self._release(slot)

    def drop_oldest(self) -> bool:
        """Give up what was left longest ago; False where nothing is held."""
        if not self._kept:
            return False
        oldest = min(self._kept, key=lambda slot: self._kept[slot].stamp)
        del self._kept[oldest]
        self._release(oldest)
        return True

    def begin(
        self, tokens: list[int], limit: int, free: Tokens[int], running: Mapping[int, list[int]]
    ) -> tuple[int, int]:
        """The slot for a sequence of ``tokens``, and how many of them, at most ``limit``, it holds already.

        ``free``: slots to choose from; ``running``: what the slots in use hold, without their drafts.
        """
        slot = free[0]
        source, count = self._longest(tokens, limit, running)
        self.num_queries += len(tokens)
        self._make_room(slot, count if source == slot else 0, [each for each in free[1:] if each != source])
        reused = self._copy(source, slot, count) if count else 0
        self.num_hits += reused
        return slot, reused

    def _longest(self, tokens: list[int], limit: int, running: Mapping[int, list[int]]) -> tuple[int, int]:
        held: Iterable[tuple[int, list[int]]] = [
            *running.items(),
            *((slot, kept.tokens) for slot, kept in self._kept.items()),
        ]
        found = max(((common(tokens, other), -slot) for slot, other in held), default=(0, 0))
        count = min(found[0], limit)
        return (-found[1], count) if count >= BLOCK else (-1, 0)

    def _make_room(self, slot: int, reused: int, others: Tokens[int]) -> None:
        """Copy what ``slot`` holds, where more than the ``reused`` beginning would be lost, to one of ``others`` that
        is empty or holds something older.
        """
        kept = self._kept.pop(slot, None)
        if kept is None or len(kept.tokens) < reused + BLOCK:
            return
        age = {other: self._kept[other].stamp if other in self._kept else 0 for other in others}
        oldest = min(others, key=age.__getitem__, default=None)
        if oldest is not None and age[oldest] < kept.stamp:
            self._copy(slot, oldest, len(kept.tokens))
            self._kept[oldest] = kept


def common(left: list[int], right: list[int]) -> int:
    """How many tokens at the beginning are the same."""
    low, high = 0, min(len(left), len(right))
    while low < high:  # halves, because comparing lists is fast and comparing their items one by one is not
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
