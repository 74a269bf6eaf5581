"""Catch-up rows after verification, told by what is accepted: stale ones would leave the text right and draft badly."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.proposers.recurrent_head import RecurrentHeadProposer
from specctl.spec.config import SpecDecodeConfig, Tree
from specctl.spec.methods import Eagle
from tests.runtime.copied import START, copied
from tests.runtime.head_kit import make_head
from tests.runtime.kit import ask, run
from tests.runtime.schooled import PROMPTS, Oracle, Schooled, chain_of


def test_a_step_after_guessed_rows_would_show(exact: Callable[..., Target], oracle: Oracle, tmp_path: Path) -> None:
    """The test above can fail: a head that keeps the rows of its own accepted guesses drafts something else."""
    made = make_head("eagle", exact(), tmp_path / "head")
    request = ask("few", PROMPTS["few"], ignore_eos=True, max_tokens=30)
    truth = {"few": run(Engine(exact(), None, EngineOptions(1)), [request])["few"]["tokens"]}
    engine = make_engine(exact(), SpecDecodeConfig(made.method, 4, model=str(made.folder)), EngineOptions(1))
    proposer: Any = engine._drafting.proposer
    honest = proposer.observe

    def lazy(sequence: Any, hidden: Tensor) -> None:
        kept = len(hidden) - 1  # the last of them was never guessed
        if sequence.num_output > 1 and kept:
            proposer._computed[sequence.slot] += kept
            hidden = hidden[kept:]
        honest(sequence, hidden)

    proposer.observe = lazy
    engine._drafting.proposer = Schooled(proposer, chain_of(made), oracle, truth)  # type: ignore[assignment]
    with pytest.raises(AssertionError):
        run(engine, [request])


STATIC = {
    k: Tree(choices=tuple(sorted({(0,) * d + (last,) for d in range(k) for last in (0, 1, 2)}, key=len)))
    for k in (1, 3, 6)
}


def mislead(engine: Engine, k: int) -> list[int]:
    """Let the head go wrong in some drafts, from one depth on, and draft on from there; answers a list that counts
    what that costs.
    """
    dice, proposer, cost = random.Random(8), engine._drafting.proposer, [0]
    assert isinstance(proposer, RecurrentHeadProposer)
    head, honest, wrong = proposer._head, proposer.propose, [-1]
    forward = head.forward

    def misled(*what: Any) -> tuple[Tensor, Tensor]:
        logits, states = forward(*what)
        if wrong[0] == 0:
            logits = logits.scatter(-1, logits.argmax(-1, keepdim=True), float("-inf"))
        wrong[0] -= 1
        return logits, states

    def propose(sequences: Any, limits: Any) -> list[Draft]:
        place = dice.randrange(k) if dice.random() < 0.4 else -1
        cost[0] += (k - place) * len(sequences) if place >= 0 else 0
        wrong[0] = place
        drafts = honest(sequences, limits)
        wrong[0] = -1
        return drafts

    head.forward, proposer.propose = misled, propose  # type: ignore[method-assign]
    return cost


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Target, Path]:
    target, head = copied(tmp_path_factory.mktemp("copied"))
    return load_target(str(target), device="cpu", dtype="float64"), head


def acceptance(pair: tuple[Target, Path], k: int, slots: int, tree: Tree | None) -> float:
    """The mean acceptance length of a head that copies the target and is misled at times; what that costs counts as
    accepted, so that k + 1 is the most.
    """
    target, head = pair
    spec = SpecDecodeConfig(Eagle(), k, model=str(head), tree=tree)
    engine = make_engine(target, spec, EngineOptions(slots, None, 24))
    cost = mislead(engine, k)
    requests = [ask(name, [START, *prompt], ignore_eos=True, max_tokens=24) for name, prompt in PROMPTS.items()]
    drafted = {name: result["tokens"] for name, result in run(engine, requests).items()}
    plain = run(Engine(target, None, EngineOptions(4)), requests)
    assert drafted == {name: result["tokens"] for name, result in plain.items()}
    assert cost[0] > 0
    return 1 + (engine.stats.num_accepted_tokens + cost[0]) / engine.stats.num_drafts


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("tree", [None, "static", "dynamic"])
def test_a_head_that_copies_the_target_is_always_right(
    k: int, slots: int, tree: str | None, pair: tuple[Target, Path]
) -> None:
    """Also in the steps after a draft that was partly rejected, whatever shape the drafts have."""
    shape = {None: None, "static": STATIC[k], "dynamic": Tree(topk=2, num_nodes=4 * k - 2)}[tree]
    assert acceptance(pair, k, slots, shape) >= k + 0.95
