"""Opening the folder of a draft head: its config.json as it stands, the sizes in it, its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor
from transformers import LlamaConfig

from specctl.errors import DamagedError, MissingError, SpecctlError
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.recognise import recognise
from specctl.resources import resolve_model
from specctl.runtime.models.linear import Linear
from specctl.runtime.models.loading import Model
from specctl.runtime.models.native import ROPE_TYPES, rope_tables, stack_shape
from specctl.runtime.models.stack import LayerWeights, Stack, StackShape
from specctl.runtime.models.weights import Weights

_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads")
_LARGEST = 1e15
OTHER_TARGET = "this is the head of another target"
_OPTIONAL = (
    "num_key_value_heads",
    "head_dim",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "max_position_embeddings",
)


@dataclass(frozen=True)
class HeadFiles:
    """A head's folder, its config and its weights; ``positions``: tokens of context that it will be asked to serve."""

    folder: Path
    config: Mapping[str, Any]
    weights: Weights
    target: Model
    positions: int

    def refuse(self, problem: str, help: str | None = None) -> SpecctlError:
        """The error to raise for a config that cannot be."""
        return DamagedError(f"{self.folder / 'config.json'}: {problem}", help=help)

    @property
    def proposed_tokens(self) -> int | None:
        """k as the checkpoint itself states it; None where it does not."""
        return ModelFacts(self.folder.name, self.folder, self.config).proposed_tokens

    @property
    def mask_token_id(self) -> int | None:
        """The token that stands for an open place, under whichever key the checkpoint keeps it."""
        return ModelFacts(self.folder.name, self.folder, self.config).mask_token_id

    def number(self, config: Mapping[str, Any], key: str) -> int:
        """The whole number of at least 1 under ``key``; raises DamagedError for anything else."""
        value = config.get(key)
        if not _whole(value) or value < 1:
            raise self.refuse(f"{key} is {value!r}; wanted a whole number of at least 1")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """The switch under ``key``; raises DamagedError for anything but true, false and null."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(f"{key} is {value!r}; wanted true or false")
        return default if value is None else value

    def part(self, key: str) -> Mapping[str, Any]:
        """The object under ``key``, empty where there is none; raises DamagedError for anything else."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.refuse(f"{key} is {value!r}; wanted an object")
        return value or {}

    @property
    def layers(self) -> Mapping[str, Any]:
        """The part of the config that describes the layers: the speculators layout keeps it apart."""
        return self.part("transformer_layer_config") or self.config

    def num_layers(self, config: Mapping[str, Any]) -> int:
        """Layers that ``config`` states; one where it says nothing."""
        stated = self.number(config, "num_hidden_layers") if "num_hidden_layers" in config else 1
        held = len(self.weights.names())
        if stated > max(1, held):
            raise self.refuse(f"num_hidden_layers is {stated}; the weights hold {held} tensors in all")
        return stated

    def unused(self, *harmless: str) -> tuple[str, ...]:
        """A note on tensors that nothing has read; ``harmless``: beginnings of names that may go unread."""
        idle = [name for name in self.weights.unread() if not name.startswith(harmless)]
        if not idle:
            return ()
        named = ", ".join(idle[:3]) + (f" and {len(idle) - 3} more" if len(idle) > 3 else "")
        return (f"{self.folder} holds tensors that its layout does not know and that are not used: {named}",)

    def layer_config(self, config: Mapping[str, Any]) -> LlamaConfig:
        """The sizes and rotations in ``config`` under the names of a current transformers config.

        Heads often state the context they were trained on; positions beyond it are served all the same.
        """
        absent = [key for key in _SIZES if not _whole(config.get(key))]
        if absent:
            raise self.refuse(f"no whole number under {', '.join(absent)}")
        keys = {key: config[key] for key in (*_SIZES, *_OPTIONAL) if config.get(key) is not None}
        try:
            made = LlamaConfig(**keys)
        except Exception as error:  # transformers checks types and rotations in its own ways
            raise self.refuse(f"transformers does not take its sizes: {error}") from error
        self._check_numbers(made, config)
        return made

    def _check_numbers(self, made: LlamaConfig, config: Mapping[str, Any]) -> None:
        """What transformers takes, though no model can have been trained with it."""
        rope = made.rope_parameters or {}
        kind = rope.get("rope_type", "default")
        if kind not in ROPE_TYPES:
            raise self.refuse(f"rope type {kind!r} does not run here; {', '.join(ROPE_TYPES)} do")
        theta, eps = rope.get("rope_theta"), made.rms_norm_eps
        if not _number(theta) or not 1 < theta < _LARGEST:
            raise self.refuse(f"rope_theta is {theta!r}; wanted a number between 1 and {_LARGEST:g}")
        factor = rope.get("partial_rotary_factor", 1.0)
        if not _number(factor) or not 0 < factor <= 1:
            raise self.refuse(f"partial_rotary_factor is {factor!r}; wanted a share above 0, at most 1")
        if not _number(eps) or not 0 < eps < 1:
            raise self.refuse(f"rms_norm_eps is {eps!r}; wanted a small number above 0")
        dim = config.get("head_dim")
        if dim is not None and dim < 1:
            raise self.refuse(f"head_dim is {dim!r}; wanted a whole number of at least 1")

    def shape(self, config: LlamaConfig, num_layers: int) -> StackShape:
        """The sizes of a stack of ``num_layers`` layers with full attention."""
        return stack_shape(config, (None,) * num_layers)

    def stack(
        self, config: LlamaConfig, shape: StackShape, layers: list[LayerWeights], products: Sequence[Tensor]
    ) -> Stack:
        """The layers with their rotation tables; ``products``: the head's other matrices."""
        try:
            cos, sin = rope_tables(config, shape.head_dim, self.positions, self.target.dtype, self.target.device)
        except (TypeError, ValueError, KeyError) as error:
            raise self.refuse(f"its rotations cannot be computed: {error}") from error
        linear = Linear([*products, *(weight for layer in layers for weight in layer.products())])
        return Stack(shape, layers, cos, sin, linear)

    def embedding(self, width: int, *names: str) -> Tensor:
        """The head's own embedding [vocab, width] under one of ``names``, else the target's."""
        for name in names:
            if name in self.weights:
                own = self.weights.finite(name, None, width)
                if len(own) < self.target.vocab_size:
                    raise self.refuse(f"{name} has {len(own)} rows; the target has {self.target.vocab_size} tokens")
                return own
        if self.target.embedding.shape[1] != width:
            raise self.refuse(
                f"the head is {width} wide and has no embedding of its own; the target's is "
                f"{self.target.embedding.shape[1]} wide",
                help=OTHER_TARGET,
            )
        return self.target.embedding


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Changes:
    """A config and weights to try in place of those that lie in a head's folder."""

    config: Mapping[str, Any]
    weights: Weights


def open_head(name: str, target: Model, positions: int, method: str, changes: Changes | None = None) -> HeadFiles:
    """Raises MissingError or DamagedError for a folder, config or weight file that is absent or unreadable, and
    SpecctlError for a checkpoint that is for another ``method``.
    """
    folder = resolve_model(name)
    if changes is not None:
        return HeadFiles(folder, changes.config, changes.weights, target, positions)
    path = folder / "config.json"
    if not path.is_file():
        raise MissingError(f"{folder} has no config.json", help="point at the folder of the draft head")
    try:
        config = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise DamagedError(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise DamagedError(f"{path} is not a JSON object")
    weights = Weights(folder, target.dtype, target.device, pickles=True)
    found = recognise(config, weights.names())
    if found not in (None, method):
        raise SpecctlError(
            f"{folder} holds a draft for method {found!r}; the setting says {method!r}",
            help=f"set method {found}, or point at another checkpoint",
        )
    return HeadFiles(folder, config, weights, target, positions)


def draft_vocabulary(files: HeadFiles, size: int) -> Tensor | None:
    """Target ids [size] of a reduced draft vocabulary, from the offsets ``d2t``; None where it is the target's own."""
    for key in ("draft_vocab_size", "truncated_vocab_size"):
        stated = files.config.get(key)
        if stated is not None and stated != size:
            raise files.refuse(f"{key} is {stated!r}; the head's matrix scores {size} tokens")
    if "d2t" not in files.weights:
        if size > files.target.vocab_size:
            raise files.refuse(f"the head scores {size} tokens, the target has {files.target.vocab_size}")
        if size < files.target.vocab_size:
            raise files.refuse(
                f"the head scores {size} tokens of the target's {files.target.vocab_size} and has no tensor 'd2t' "
                "that says which"
            )
        return None
    stored = files.weights.integers("d2t", size)
    ids = torch.arange(size, device=files.target.device) + stored
    if _stored_as_ids(files, stored, ids):
        raise DamagedError(
            f"{files.folder}: tensor 'd2t' holds token ids, where offsets (id minus row) are meant",
            help="export the head again with d2t = ids - arange; `specctl inspect --probe` shows what it accepts then",
        )
    wrong = ids[(ids < 0) | (ids >= files.target.vocab_size)]
    if len(wrong):
        raise DamagedError(
            f"{files.folder}: tensor 'd2t' leads to token {int(wrong[0])}; the target has {files.target.vocab_size}",
            help="this head is for a target with another vocabulary",
        )
    return ids


def _stored_as_ids(files: HeadFiles, stored: Tensor, ids: Tensor) -> bool:
    """Whether a vocabulary map makes sense as ids alone: told by the mask ``t2d`` where there is one, else by ids that
    ascend within the vocabulary while the offsets lead beyond it.
    """
    full = files.target.vocab_size
    inside = bool((stored >= 0).all()) and bool((stored < full).all()) and bool((stored.diff() > 0).all())
    if not inside:
        return False
    if "t2d" in files.weights:
        drafted = files.weights.stored("t2d").to(device=stored.device, dtype=torch.bool)
        fits = len(drafted) == full and bool(drafted[stored].all())
        return fits and not (bool((ids < full).all()) and bool(drafted[ids.clamp(max=full - 1)].all()))
    return bool((ids >= full).any())
