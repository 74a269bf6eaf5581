"""Suffix decoding: the published rule's own numbers, its definition by brute force, and what the proposer remembers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.runtime import EngineOptions, Target, make_engine
from specctl.runtime.proposers.suffix_tree import GrowingText, SuffixTree, Walk
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Suffix
from tests.runtime.kit import ask, run

A = [1, 2, 3, 4, 5, 1, 2, 3, 4, 6, 1, 2, 3]
B = [1, 2, 3, 1, 2, 4, 1, 2]
LONG = [*range(1, 10), *range(1, 7)]

# Produced with the original C++ (facts, A8): sequence, other than the defaults, tokens, probs, score, match.
VECTORS = [
    (A, {}, [4, 5, 1], [0.6667, 0.3333, 0.3333], 1.3333, 3),
    (A, {"factor": 2}, [4, 5, 1, 2, 3, 4], [0.6667, *[0.3333] * 5], 2.3333, 3),
    ([*A, 4], {}, [5, 1, 2, 3], [0.3333] * 4, 1.3333, 4),
    (B, {}, [3, 1], [0.3333] * 2, 0.6667, 2),
    ([1, 2, 4, 1, 2, 3, 1, 2], {}, [4, 1], [0.3333] * 2, 0.6667, 2),
    ([*B, 4, 1, 2], {}, [4, 1, 2], [0.5] * 3, 1.5, 5),
    (B, {"min_prob": 0.34}, [], [], 0, None),
    (B, {"offset": 2}, [3, 1, 2, 4], [0.3333] * 4, 1.3333, 2),
    ([1, 2, 3, 4, 5], {}, [], [], 0, None),
    ([7] * 10, {}, [7] * 4, [0.8571, 0.7143, 0.5714, 0.4286], 2.5714, 4),
    ([7] * 10, {"factor": 4}, [7] * 8, [i / 9 for i in range(8, 0, -1)], 4.0, 2),
    (LONG, {"depth": 4}, [7, 8], [0.5] * 2, 1.0, 2),
    (LONG, {}, [7, 8, 9, 1, 2, 3], [0.5] * 6, 3.0, 6),
]


def tree_of(texts: Sequence[Sequence[int]], depth: int = 24) -> tuple[SuffixTree, list[GrowingText]]:
    tree = SuffixTree(depth)
    made = []
    for tokens in texts:
        made.append(GrowingText())
        tree.extend(made[-1], tokens)
    return tree, made


@pytest.mark.parametrize(("tokens", "how", "drafted", "probs", "score", "match"), VECTORS)
def test_the_published_vectors(
    tokens: list[int], how: dict[str, float], drafted: list[int], probs: list[float], score: float, match: int | None
) -> None:
    tree, _ = tree_of([tokens], int(how.get("depth", 24)))
    walk = tree.speculate(tokens, 8, how.get("factor", 1), how.get("offset", 0), how.get("min_prob", 0.1))
    assert list(walk.tokens) == drafted
    assert list(walk.probs) == pytest.approx(probs, abs=5e-5)
    assert walk.score == pytest.approx(score, abs=5e-5)
    if match is not None:
        assert walk.match == match


def test_the_published_vector_of_the_shared_tree() -> None:
    tree, _ = tree_of([[1, 2, 3, 4, 5]])
    assert tree.speculate([9, 1, 2], 8, 1, 0, 0.1) == Walk((3, 4), (1.0, 1.0), 2)


def by_definition(texts: list[list[int]], context: list[int], most: int, depth: int, min_prob: float) -> Walk:
    """Counts by looking at every place of every text; nodes are tuples of tokens."""

    def places(path: tuple[int, ...]) -> list[tuple[int, int]]:
        size = len(path)
        return [(i, e) for i, t in enumerate(texts) for e in range(size, len(t) + 1) if tuple(t[e - size : e]) == path]

    best = Walk()
    for match in range(1, min(len(context), depth - 1) + 1):
        path = tuple(context[-match:])
        here, prob, tokens, probs = places(path), 1.0, [], []
        while here and len(tokens) < min(most, match, depth - match):
            counts: dict[int, int] = {}
            for text, end in here:
                if end < len(texts[text]):
                    counts[texts[text][end]] = counts.get(texts[text][end], 0) + 1
            if not counts:
                break
            token = max(counts, key=counts.__getitem__)  # of equals the first, whose place is the oldest
            prob *= counts[token] / len(here)
            if prob < min_prob:
                break
            path = (*path, token)
            here = places(path)
            tokens.append(token)
            probs.append(prob)
        walk = Walk(tuple(tokens), tuple(probs), match)
        if tokens and walk.score >= best.score:
            best = walk
    return best


TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=14), min_size=1, max_size=4)


@given(TEXTS, st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(2, 7))
@settings(max_examples=400, deadline=None)
def test_the_tree_is_its_definition(texts: list[list[int]], context: list[int], depth: int) -> None:
    tree, _ = tree_of(texts, depth)
    for begin in ([], context):
        wanted = by_definition(texts, [*begin, *texts[0]] or context, 8, depth, 0.1)
        assert tree.speculate([*begin, *texts[0]] or context, 8, 1, 0, 0.1) == wanted
    assert tree.speculate(context, 8, 1, 0, 0.1) == by_definition(texts, context, 8, depth, 0.1)


@given(TEXTS, st.integers(2, 7), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_texts_may_grow_in_turns_and_leave_again(texts: list[list[int]], depth: int, dice: random.Random) -> None:
    """Counts do not depend on who grew when; what was removed leaves no trace in them."""
    tree, made = tree_of([[]] * len(texts), depth)
    left = {i: list(text) for i, text in enumerate(texts)}
    while any(left.values()):
        i = dice.choice([i for i in left if left[i]])
        size = dice.randint(1, len(left[i]))
        tree.extend(made[i], left[i][:size])
        left[i] = left[i][size:]
    for gone in range(len(texts)):
        assert counts(tree) == expected_counts(texts[gone:], depth)
        tree.remove(made[gone])
    assert counts(tree) == {}


def counts(tree: SuffixTree) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    todo = [((), tree._root)]
    while todo:
        path, node = todo.pop()
        if node.children is None and len(path) < tree.depth:
            rest = node.text.tokens[node.at : node.at + tree.depth - len(path)]
            found |= {(*path, *rest[:i]): 1 for i in range(1, len(rest) + 1)}
            continue
        for token, child in (node.children or {}).items():
            found[(*path, token)] = child.count
            todo.append(((*path, token), child))
    return found


def expected_counts(texts: list[list[int]], depth: int) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for text in texts:
        for begin in range(len(text)):
            for end in range(begin + 1, min(len(text), begin + depth) + 1):
                found[tuple(text[begin:end])] = found.get(tuple(text[begin:end]), 0) + 1
    return found


def test_answers_are_shared_and_the_oldest_are_forgotten(exact: Callable[..., Target]) -> None:
    """The same question again is answered from the shared tree; with room for one answer it is gone by then."""
    lengths = {}
    for room in (10, 1, 0):
        engine = make_engine(
            exact(), SpecDecodeConfig(Suffix(max_cached_requests=room, min_token_prob=0.0), 6), EngineOptions(1)
        )
        run(engine, [ask("first", [1, 2, 3], ignore_eos=True, max_tokens=40)])
        run(engine, [ask("other", [9, 8, 7], ignore_eos=True, max_tokens=40)])
        again = run(engine, [ask("again", [1, 2, 3], ignore_eos=True, max_tokens=40)])["again"]["stats"]
        lengths[room] = again.mean_acceptance_length_all_steps
        assert len(engine._drafting.proposer._answers) == min(room, 3)  # type: ignore[union-attr]
    assert lengths[10] > lengths[1] >= 1
    assert lengths[10] > lengths[0]


def test_a_step_costs_well_under_a_millisecond() -> None:
    """Text with plenty of repetition, as code has; the median keeps a busy machine out of the figure."""
    dice = random.Random(1)
    words = [[dice.randrange(1000) for _ in range(dice.randrange(2, 12))] for _ in range(60)]
    text: list[int] = []
    while len(text) < 4000:
        text += dice.choice(words)
    tree, made = tree_of([text])
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        tree.extend(made[0], [dice.choice(text)])
        tree.speculate(made[0].tokens[-24:], 24, 1, 0, 0.1)
        times.append(time.perf_counter() - begin)
    assert sorted(times)[len(times) // 2] < 5e-4


def test_an_engine_that_forgets_drafts_as_a_new_one(exact: Callable[..., Target]) -> None:
    """What earlier requests left behind would make a second run of the same prompts look better than the first."""
    engine = make_engine(exact(), SpecDecodeConfig(Suffix(min_token_prob=0.0), 4), EngineOptions(2))
    requests = [ask(f"{i}", [i, 7, 8], ignore_eos=True) for i in range(4)]

    def drafted() -> list[int]:
        before = engine.stats.copy()
        run(engine, requests)
        return [(engine.stats - before).num_draft_tokens, (engine.stats - before).num_accepted_tokens]

    first, warm = drafted(), drafted()
    assert warm[1] > first[1], "all that was answered before is followed"
    engine.forget()
    assert drafted() == first
    engine.add(requests[0])
    with pytest.raises(RuntimeError, match="1 requests run or wait"):
        engine.forget()
