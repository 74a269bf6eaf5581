"""Checking a head against its reference while the engine runs it, whatever is accepted."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.models.hidden import FINAL
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.head_parts import MadeHead
from tests.runtime.kit import ask, run

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


class Schooled:
    """A proposer whose drafts are checked against the reference and then replaced by what makes the target accept a
    number of them that changes from step to step: the head's own memory must not suffer from either.
    """

    def __init__(self, proposer: Any, made: MadeHead, oracle: Oracle, truth: Mapping[str, list[int]]) -> None:
        self._proposer = proposer
        self._made = made
        self._oracle = oracle
        self._truth = truth
        self._dice = random.Random(3)
        self.compared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        drafts = self._proposer.propose(sequences, limits)
        taught = []
        for sequence, draft, limit in zip(sequences, drafts, limits, strict=True):
            if draft.tokens:
                states = self._oracle.states(sequence.tokens[:-1])
                assert draft.tokens == self._made.reference(sequence.tokens, states, len(draft.tokens))
                self.compared += len(draft.tokens)
            assert len(draft.tokens) == min(self._proposer.num_speculative_tokens, max(limit, 0))
            taught.append(Draft(self._teach(sequence, draft.tokens)))
        return taught

    def _teach(self, sequence: Any, drafted: list[int]) -> list[int]:
        right = self._truth[sequence.request.id][sequence.num_output :]
        known = right[: self._dice.randint(0, len(drafted))]
        return known + [(token + 1) % 256 for token in drafted[len(known) :]]


def check_against_reference(target: Target, setting: SpecDecodeConfig, made: MadeHead, oracle: Oracle) -> None:
    requests = [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()]
    plain = run(Engine(target, None, EngineOptions(4)), requests)
    engine = make_engine(target, setting, EngineOptions(3, None, 9))
    truth = {name: result["tokens"] for name, result in plain.items()}
    schooled: Any = Schooled(engine._proposer, made, oracle, truth)
    engine._proposer = schooled
    drafted = run(engine, requests)
    assert {name: result["tokens"] for name, result in drafted.items()} == truth
    assert schooled.compared > 100
    assert all(engine.stats.acceptance_length_histogram), "each number of accepted tokens must have come up"
