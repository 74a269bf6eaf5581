"""Proposers whose drafts are compared with a reference and then replaced, so that every accept count comes up."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.runtime import Engine, EngineOptions, load_target, make_engine
from specctl.runtime.draft import Draft
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.family_reference import Drafter
from tests.runtime.kit import ask, run

PROMPTS = {
    "one": [97],
    "few": list(b"abcabc"),
    "long": [random.Random(5).randrange(256) for _ in range(50)],
}


class Schooled:
    """A proposer whose drafts are compared with a reference and then replaced by ones of which the target accepts a
    number that changes from step to step.
    """

    def __init__(self, proposer: Any, reference: Drafter, states: Callable[[list[int]], Tensor], truth: Any) -> None:
        self._proposer = proposer
        self._reference = reference
        self._states = states
        self._truth = truth
        self._dice = random.Random(3)
        self.compared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        taught = []
        for sequence, draft in zip(sequences, self._proposer.propose(sequences, limits), strict=True):
            wanted = self._reference(sequence.tokens, self._states(sequence.tokens[:-1]), len(draft.tokens))
            assert draft.tokens[: len(wanted)] == wanted
            self.compared += len(wanted)
            right = self._truth[sequence.request.id][sequence.num_output :][: self._dice.randint(0, len(draft.tokens))]
            taught.append(Draft(right + [(token + 1) % 256 for token in draft.tokens[len(right) :]]))
        return taught


def check(folder: Path, setting: SpecDecodeConfig, reference: Drafter, states: Callable[[list[int]], Tensor]) -> None:
    """Decode with ``setting`` and compare every draft with ``reference``, every output with plain decoding."""
    target = load_target(str(folder), device="cpu", dtype="float64")
    requests = [ask(name, prompt, ignore_eos=True, max_tokens=16) for name, prompt in PROMPTS.items()]
    truth = {name: result["tokens"] for name, result in run(Engine(target, None, EngineOptions(3)), requests).items()}
    engine = make_engine(target, setting, EngineOptions(2, None, 60))
    schooled: Any = Schooled(engine._drafting.proposer, reference, states, truth)
    engine._drafting.proposer = schooled
    drafted = run(engine, requests)
    assert {name: result["tokens"] for name, result in drafted.items()} == truth
    assert schooled.compared >= 30
    assert all(engine.stats.acceptance_length_histogram), "each number of accepted tokens must have come up"


def silence(folder: Path) -> None:
    """Let the next token hang on the newest alone, in a target and in its prediction layers, which pass the embedding
    on: what they draft is always right.
    """
    tensors = load_file(folder / "model.safetensors")
    for name, value in tensors.items():
        if any(part in name for part in ("o_proj", "out_proj", "down_proj", "per_layer_projection")):
            tensors[name] = torch.zeros_like(value)
        elif "norm" in name or "layer_scalar" in name:
            tensors[name] = torch.ones_like(value)
        elif any(part in name for part in ("mtp.fc", "eh_proj", "mtp_linear_proj", "mtp_layers.0.input_proj")):
            halves = [torch.eye(len(value)), torch.zeros(len(value), len(value))]
            tensors[name] = torch.cat(halves[::-1] if "input_proj" in name else halves, -1)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def spoil(engine: Engine) -> list[int]:
    """Let some of the engine's drafts go wrong from a place on; answers a list that counts the tokens spoilt."""
    dice, proposer, spoilt = random.Random(8), engine._drafting.proposer, [0]
    honest = proposer.propose  # type: ignore[union-attr]

    def sometimes_wrong(sequences: Any, limits: Any) -> list[Draft]:
        drafts: list[Draft] = honest(sequences, limits)
        for draft in drafts:
            if dice.random() < 0.3:
                place = dice.randrange(len(draft.tokens))
                draft.tokens[place] = (draft.tokens[place] + 1) % 256
                spoilt[0] += len(draft.tokens) - place
        return drafts

    proposer.propose = sometimes_wrong  # type: ignore[union-attr,method-assign]
    return spoilt
