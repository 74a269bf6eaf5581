"""Checkpoints that the runtime's tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from specctl.runtime import Target, load_target
from specctl.runtime.integrity import VARIABLE
from tests.runtime.kit import build, save
from tests.runtime.schooled import Oracle

# Stale rows of any cache are looked for in every test here; `tests.runtime.kit.run` says whether there were some.
os.environ[VARIABLE] = "1"
# Kernels this small only lose time by sharing their work.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``checkpoint(family, seed)``: the folder of a tiny checkpoint, made once a session."""
    made: dict[tuple[str, int], Path] = {}

    def get(family: str = "llama", seed: int = 0) -> Path:
        if (family, seed) not in made:
            made[family, seed] = build(family, tmp_path_factory.mktemp(f"{family}-{seed}"), seed)
        return made[family, seed]

    return get


@pytest.fixture(scope="session")
def relative(checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A draft that often agrees with the target: the target's weights with a little noise."""
    made: dict[str, Path] = {}

    def get(family: str = "llama", noise: float = 0.05) -> Path:
        if family not in made:
            from transformers import AutoModelForCausalLM

            torch.manual_seed(7)
            model = AutoModelForCausalLM.from_pretrained(checkpoint(family))
            with torch.no_grad():
                for value in model.parameters():
                    value.add_(torch.randn_like(value) * noise * value.std())
            made[family] = save(model, tmp_path_factory.mktemp(f"{family}-relative"))
        return made[family]

    return get


@pytest.fixture(scope="session")
def exact(checkpoint: Callable[..., Path]) -> Callable[..., Target]:
    """``exact(family)``: the target in float64, where greedy equality has no exception."""
    loaded: dict[str, Target] = {}

    def get(family: str = "llama") -> Target:
        if family not in loaded:
            loaded[family] = load_target(str(checkpoint(family)), device="cpu", dtype="float64")
        return loaded[family]

    return get


@pytest.fixture(scope="session")
def oracle(checkpoint: Callable[..., Path]) -> Oracle:
    return Oracle(checkpoint())
