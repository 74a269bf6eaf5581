"""Catch-up rows after verification, told by what is accepted: stale ones would leave the text right and draft badly."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.eagle_heads import eagle
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


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_head_that_knows_the_target_is_always_right(
    k: int, slots: int, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """The target's next token hangs on its newest alone, and the head passes the embedding on: all k are accepted, also
    in steps after a draft that was spoilt on purpose.
    """
    from specctl.runtime import load_target

    folder = tmp_path / "target"
    tensors = load_file(checkpoint() / "model.safetensors")
    silent = {n: torch.zeros_like(v) if "o_proj" in n or "down_proj" in n else v for n, v in tensors.items()}
    silent |= {n: torch.ones_like(v) for n, v in silent.items() if "norm" in n}
    folder.mkdir()
    for file in checkpoint().iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    save_file(silent, folder / "model.safetensors", {"format": "pt"})
    target = load_target(str(folder), device="cpu", dtype="float64")
    made = eagle(target, tmp_path / "head", bias=False)
    head = load_file(made.folder / "model.safetensors")
    head |= {n: torch.zeros_like(v) for n, v in head.items() if "o_proj" in n or "down_proj" in n}
    head["fc.weight"] = torch.cat([torch.eye(32), torch.zeros(32, 32)], -1).double()
    save_file(head, made.folder / "model.safetensors")
    engine = make_engine(target, SpecDecodeConfig(made.method, k, model=str(made.folder)), EngineOptions(slots))
    dice, proposer, spoilt = random.Random(8), engine._drafting.proposer, [0]
    honest = proposer.propose  # type: ignore[union-attr]

    def sometimes_wrong(sequences: Any, limits: Any) -> list[Draft]:
        drafts = honest(sequences, limits)
        for draft in drafts:
            if dice.random() < 0.3:
                place = dice.randrange(len(draft.tokens))
                draft.tokens[place] = (draft.tokens[place] + 1) % 256
                spoilt[0] += len(draft.tokens) - place
        return drafts

    proposer.propose = sometimes_wrong  # type: ignore[union-attr,method-assign]
    run(engine, [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()])
    stats = engine.stats
    assert spoilt[0] > 0
    assert 1 + (stats.num_accepted_tokens + spoilt[0]) / stats.num_drafts >= k + 0.95
