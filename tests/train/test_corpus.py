"""The corpus: the same every time, filled in completely, with what is to be copied really in the prompt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from random import Random

import pytest

from train.corpus import coding, math_problems, stories, summaries
from train.corpus.build import TRAIN_SEED, bench_examples, documents, runs
from train.corpus.words import Example, say

MAKERS = [coding.edit, coding.write, math_problems.problem, summaries.summary, stories.piece]


def test_documents_repeat_under_one_seed() -> None:
    first = [doc.prompt + doc.answer for doc in islice(documents(TRAIN_SEED), 200)]
    assert first == [doc.prompt + doc.answer for doc in islice(documents(TRAIN_SEED), 200)]
    assert len(set(first)) > 195


@pytest.mark.parametrize("maker", MAKERS)
def test_templates_are_filled_in(maker: Callable[[Random], Example]) -> None:
    rng = Random(1)
    for _ in range(500):
        example = maker(rng)
        if example.category != "coding":
            assert not set("{}") & set(example.prompt + example.answer)
            assert "  " not in example.prompt + example.answer
        assert example.answer.strip() == example.answer


def test_summaries_copy_from_their_prompt() -> None:
    rng = Random(2)
    for _ in range(500):
        example = summaries.summary(rng)
        for slot in example.slots:
            assert slot in example.prompt
            assert slot in example.answer


def test_edits_change_something_and_keep_most() -> None:
    rng = Random(4)
    for _ in range(500):
        example = coding.edit(rng)
        fence = example.answer[example.answer.index("```") :]
        assert fence not in example.prompt
        assert [line.strip() for line in fence.splitlines()[1:-1]] == example.slots


def test_bench_has_enough_of_every_category() -> None:
    bench = bench_examples()
    for category in ("coding", "math", "summarization", "writing"):
        assert sum(e.category == category for e in bench) >= 16
    code = [e for e in bench if e.category == "coding"]
    assert 2 * sum(e.kind == "edit" for e in code) >= len(code)
    assert len({e.prompt for e in bench}) == len(bench)


def test_runs_and_templates() -> None:
    assert len(runs(list(range(14)))) == 3
    assert say(Random(1), "{a|a} {b}{|} {c{1|1}}", b="x", c1="y") == "a x y"
