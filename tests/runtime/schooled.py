"""Checking a head against its reference while the engine runs it, whatever is accepted."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.models.hidden import FINAL
from specctl.spec.config import SpecDecodeConfig, Tree
from tests.runtime.head_parts import MadeHead
from tests.runtime.kit import ask, run
from tests.runtime.tree_kit import plain_tree, taught

PROMPTS = {
    "one": [97],
    "few": list(b"abcabc"),
    "long": [random.Random(5).randrange(256) for _ in range(50)],
    "more": [random.Random(6).randrange(256) for _ in range(11)],
}


class Oracle:
    """The target in transformers, for true hidden states and the true continuation."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
        self._raw: list[Tensor] = []
        self._model.model.layers[-1].register_forward_hook(self._keep)

    def _keep(self, module: Any, args: Any, output: Any) -> None:
        self._raw = [output if isinstance(output, Tensor) else output[0]]

    @torch.inference_mode()
    def states(self, tokens: list[int]) -> Mapping[int, Tensor]:
        out = self._model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
        states = dict(enumerate(state[0] for state in out.hidden_states[:-1]))
        return states | {len(states): self._raw[0].reshape(len(tokens), -1), FINAL: out.hidden_states[-1][0]}


# Tokens so far, the target's states by layer, and how deep; the token path of each drafted token.
Expected = Callable[[list[int], Mapping[int, Tensor], int], list[list[int]]]


class Schooled:
    """A proposer whose drafts are checked against ``expected`` and then replaced by what makes the target accept a
    number of them that changes from step to step: the head's own memory must not suffer from either.
    """

    def __init__(self, proposer: Any, expected: Expected, oracle: Oracle, truth: Mapping[str, list[int]]) -> None:
        self._proposer = proposer
        self._expected = expected
        self._oracle = oracle
        self._truth = truth
        self._dice = random.Random(3)
        self.compared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        drafts = self._proposer.propose(sequences, limits)
        schooled = []
        for sequence, draft, limit in zip(sequences, drafts, limits, strict=True):
            assert bool(draft.tokens) == (limit > 0)
            if draft.tokens:
                states = self._oracle.states(sequence.tokens[:-1])
                depth = min(self._proposer.num_speculative_tokens, limit)
                assert sorted(draft.paths()[1:]) == sorted(self._expected(sequence.tokens, states, depth))
                self.compared += len(draft.tokens)
            right = self._truth[sequence.request.id][sequence.num_output :]
            schooled.append(taught(draft, right, self._dice.randint(0, draft.depth), self._dice))
        return schooled


def chain_of(made: MadeHead) -> Expected:
    """The beginnings of a head's reference chain."""

    def expected(tokens: list[int], hidden: Mapping[int, Tensor], depth: int) -> list[list[int]]:
        drafted = made.reference(tokens, hidden, depth)
        return [drafted[: place + 1] for place in range(depth)]

    return expected


def tree_of(made: MadeHead, tree: Tree) -> Expected:
    """The tree that a head's reference scores grow."""

    def expected(tokens: list[int], hidden: Mapping[int, Tensor], depth: int) -> list[list[int]]:
        assert made.scores is not None, "only heads with scores are asked for trees"
        scores = made.scores
        return plain_tree(tree, depth, lambda path: scores(tokens, hidden, path))

    return expected


def check_against_reference(target: Target, setting: SpecDecodeConfig, made: MadeHead, oracle: Oracle) -> None:
    requests = [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()]
    plain = run(Engine(target, None, EngineOptions(4)), requests)
    engine = make_engine(target, setting, EngineOptions(3, None, 9))
    truth = {name: result["tokens"] for name, result in plain.items()}
    expected = tree_of(made, setting.tree) if setting.tree else chain_of(made)
    schooled: Any = Schooled(engine._drafting.proposer, expected, oracle, truth)
    engine._drafting.proposer = schooled
    drafted = run(engine, requests)
    assert {name: result["tokens"] for name, result in drafted.items()} == truth
    assert schooled.compared > 100
    # A dynamic tree may be wide rather than deep.
    wanted = 3 if setting.tree and setting.tree.topk else 5
    assert all(engine.stats.acceptance_length_histogram[:wanted]), "each number of accepted tokens must have come up"
