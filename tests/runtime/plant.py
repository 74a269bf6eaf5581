"""Faults to plant into copies of the bundled checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.bench.workloads import choose, read_workload, tokens_of
from specctl.resources import bundled_model
from specctl.runtime import Target, load_target

Edit = Callable[[dict[str, Tensor]], dict[str, Tensor]]
EAGLE = str(bundled_model("demo-eagle"))
EAGLE3 = str(bundled_model("demo-eagle3"))
DRAFT = str(bundled_model("demo-draft"))
MTP = str(bundled_model("demo-mtp"))
MEDUSA = str(bundled_model("demo-medusa"))
MLP = str(bundled_model("demo-mlp-speculator"))
PARD = str(bundled_model("demo-pard"))
DFLASH = str(bundled_model("demo-dflash"))
TAPS = "eagle_aux_hidden_state_layer_ids"


@cache
def demo() -> Target:
    return load_target("demo", device="cpu", dtype="float32")


@cache
def prompts() -> tuple[list[int], ...]:
    return tuple(tokens_of(prompt, demo()) for prompt in choose(read_workload(), None, 24).prompts)


def copy(place: Path, source: str, edit: Edit = dict, **keys: object) -> str:
    """The checkpoint ``source`` with other tensors or keys."""
    shutil.copytree(source, place)
    config = json.loads((place / "config.json").read_text("utf-8"))
    (place / "config.json").write_text(json.dumps(config | keys), "utf-8")
    if edit is not dict:
        tensors = edit(load_file(place / "model.safetensors"))
        save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, place / "model.safetensors")
    return str(place)


def tapped(ids: list[int]) -> dict[str, object]:
    return {"eagle_config": {TAPS: ids, "use_aux_hidden_state": True}}


def swapped(*names: str) -> Edit:
    """The column halves of some tensors exchanged."""

    def edit(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors | {name: torch.cat(tensors[name].chunk(2, dim=1)[::-1], dim=1) for name in names}

    return edit


FUSION = swapped("fc.weight")
CROSSED = swapped(*(f"midlayer.self_attn.{part}_proj.weight" for part in "qkv"))
MTP_FUSION = swapped("model.mtp_layers.0.input_proj.weight")


def stranger(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a head of another target is to this one: states in another basis."""
    order = torch.randperm(256, generator=torch.Generator().manual_seed(1))
    token, state = tensors["fc.weight"].chunk(2, dim=1)
    return tensors | {"fc.weight": torch.cat([token, state[:, order]], dim=1)}


def ids_for_offsets(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return tensors | {"d2t": tensors["d2t"] + torch.arange(len(tensors["d2t"]))}


def overflowed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return tensors | {"fc.weight": (tensors["fc.weight"].float() * 1e6).half()}


def without(name: str) -> Edit:
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


def turned(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Medusa heads numbered from behind."""
    made = {}
    for name, tensor in tensors.items():
        parts = name.split(".")
        parts[1] = str(4 - int(parts[1]))
        made[".".join(parts)] = tensor
    return made


def noisy(share: float, seed: int = 5) -> Edit:
    """Every tensor with noise of ``share`` of its own spread."""

    def edit(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        dice = torch.Generator().manual_seed(seed)
        return {
            name: (t.float() + torch.randn(t.shape, generator=dice) * share * t.float().std()).to(t.dtype)
            if t.is_floating_point()
            else t
            for name, t in tensors.items()
        }

    return edit


def untrained(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Random weights of a usual size, norms as they are at the start of a training."""
    dice = torch.Generator().manual_seed(3)
    return {
        name: t
        if not t.is_floating_point()
        else torch.ones_like(t)
        if t.dim() == 1
        else (torch.randn(t.shape, generator=dice) * 0.05).to(t.dtype)
        for name, t in tensors.items()
    }
