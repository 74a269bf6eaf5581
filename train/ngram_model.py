"""An interpolated Kneser-Ney model over tokens, properly normalised: the yardstick for held-out bits per byte.

Vocabularies of up to 2,048 tokens let a 5-gram fit into one 64-bit number, so that counting is sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 11
Keys = NDArray[np.int64]


@dataclass
class Order:
    """What is known about n-grams of one length."""

    grams: Keys
    counts: NDArray[np.int64]
    contexts: Keys
    totals: NDArray[np.int64]
    kinds: NDArray[np.int64]
    discount: float


def _order(grams: Keys, counts: NDArray[np.int64]) -> Order:
    before = grams >> BITS
    starts = np.flatnonzero(np.concatenate(([True], before[1:] != before[:-1])))
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    discount = once / (once + 2 * twice) if once and twice else 0.5
    kinds = np.diff(np.concatenate((starts, [len(grams)])))
    return Order(grams, counts, before[starts], np.add.reduceat(counts, starts), kinds, discount)


def windows(documents: list[list[int]], n: int) -> Keys:
    """One number for the n-gram that ends at each token; documents are padded in front with token 0."""
    flat = np.concatenate([np.array([0] * (n - 1) + ids, dtype=np.int64) for ids in documents])
    ends = np.concatenate([np.array([False] * (n - 1) + [True] * len(ids)) for ids in documents])
    keys: Keys = np.zeros(len(flat), dtype=np.int64)
    for back in range(n):
        shifted = np.concatenate((np.zeros(back, dtype=np.int64), flat[: len(flat) - back]))
        keys |= shifted << (BITS * back)
    kept: Keys = keys[ends]
    return kept


def _look_up(sorted_keys: Keys, values: NDArray[Any], wanted: Keys) -> NDArray[Any]:
    at = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[at] == wanted, values[at], 0)


class KneserNey:
    """Trained once, then asked for the probabilities of whole documents."""

    def __init__(self, documents: list[list[int]], vocabulary: int, n: int = 5) -> None:
        if vocabulary > 1 << BITS:
            raise ValueError(f"the vocabulary has {vocabulary} tokens, more than {1 << BITS}")
        self.n, self.vocabulary = n, vocabulary
        grams, counts = np.unique(windows(documents, n), return_counts=True)
        self.orders = [_order(grams, counts)]
        for length in range(n - 1, 0, -1):
            # Lower orders count in how many different contexts an n-gram was seen, not how often.
            grams, counts = np.unique(grams & ((1 << (BITS * length)) - 1), return_counts=True)
            self.orders.append(_order(grams, counts))
        self.orders.reverse()

    def probabilities(self, documents: list[list[int]]) -> NDArray[np.float64]:
        """Of every token of the documents in turn, given the tokens before it."""
        return self.of(windows(documents, self.n))

    def of(self, keys: Keys) -> NDArray[np.float64]:
        """Of the last token of each n-gram given the others."""
        result = np.full(len(keys), 1.0 / self.vocabulary)
        for length, order in enumerate(self.orders, start=1):
            wanted = keys & ((1 << (BITS * length)) - 1)
            count = _look_up(order.grams, order.counts, wanted)
            total = _look_up(order.contexts, order.totals, wanted >> BITS)
            kinds = _look_up(order.contexts, order.kinds, wanted >> BITS)
            seen = np.maximum(total, 1)
            mixed = np.maximum(count - order.discount, 0) / seen + order.discount * kinds / seen * result
            result = np.where(total > 0, mixed, result)
        return result
