"""The yardsticks measure what they say: the 5-gram sums to one, acceptance counts by definition, slots are exact."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from train.acceptance import by_ngram, simulate
from train.batches import copy_row
from train.corpus.words import Example
from train.evaluate import repeats, slots_right
from train.ngram_model import BITS, KneserNey


@pytest.mark.parametrize("n", [2, 5])
def test_the_ngram_model_sums_to_one(n: int) -> None:
    rng = Random(5)
    documents = [[rng.choice((1, 2, 2, 3, rng.randrange(1, 12))) for _ in range(rng.randint(1, 30))] for _ in range(60)]
    model = KneserNey(documents, vocabulary=12, n=n)
    contexts = [doc[: n - 1] for doc in documents if len(doc) >= n] + [[11] * (n - 1)]
    for context in contexts:
        key = 0
        for token in context:
            key = key << BITS | token
        everything = np.array([key << BITS | token for token in range(12)], dtype=np.int64)
        assert model.of(everything).sum() == pytest.approx(1.0)


def test_the_ngram_model_knows_its_text() -> None:
    model = KneserNey([[1, 2, 3, 4, 5, 6]] * 3 + [[7, 8, 9]], vocabulary=20)
    seen, unseen = model.probabilities([[1, 2, 3, 4, 5, 6]]), model.probabilities([[6, 4, 2, 5, 3, 1]])
    assert seen[1:].min() > unseen[1:].max()


def test_acceptance_counts() -> None:
    tally = simulate([9], [1, 2, 3, 4, 5, 6], lambda context: [context[-1] + 1, context[-1] + 2])
    # After the prefill's token: 2 3 | 4, then 5 6 and the output is over.
    assert (tally.steps, tally.drafts, tally.drafted, tally.accepted) == (2, 2, 4, 4)
    assert tally.length == 3.0
    empty = simulate([9], [1, 2, 3], lambda _context: [])
    assert (empty.steps, empty.drafts, empty.length_all) == (2, 0, 1.0)


def test_ngram_takes_the_longest_suffix_at_its_earliest_place() -> None:
    propose = by_ngram(k=2)
    assert propose([1, 2, 8, 8, 1, 2, 9, 9, 1, 2]) == [8, 8]
    assert propose([5, 1, 2, 8, 8, 4, 1, 2, 9, 9, 4, 1, 2]) == [9, 9]
    assert propose([1, 2, 3]) == []


def test_repeats_and_slots() -> None:
    assert repeats([1, 2, 3, 4, 1, 2, 3, 4]) == pytest.approx(0.2)
    assert repeats([1, 2]) == 0.0
    edit = Example("coding", "edit", "", "", ["a = 1", "b = 2", "return b"])
    assert slots_right(edit, "```python\n    a = 1\n    return b\n```") == (2, 3)
    math = Example("math", "math", "", "Mira has 7", ["Mira", "7", "12"])
    assert slots_right(math, "Mira has 17") == (1, 2)


def test_copy_rows_only_count_what_can_be_known() -> None:
    ids, weights = copy_row(Random(3), 128, 2048, list(range(100, 400)))
    assert len(ids) == len(weights) == 128
    pairs = list(pairwise(ids))
    for at, weight in enumerate(weights):
        if weight:
            assert (ids[at - 1], ids[at]) in pairs[: at - 1]
