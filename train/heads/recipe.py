"""What every recipe has: a teacher, a loss over a batch, and a checkpoint in a published layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from specctl.runtime import Target
from specctl.runtime.models.hidden import FINAL
from train.heads.batches import Batch
from train.heads.parts import Sizes, product, rms

TAPS = (2, 5, 8)
"""Layers passed, of the ten of the demo target, whose states are recorded beside the final ones."""


@dataclass(frozen=True)
class Teacher:
    """The target as heads see it. `embedding` and `head` [vocab, width]; `norm` [width]: its final one; `layers`: what
    a recording's states hold, side by side (see `specctl.runtime.models.hidden`).
    """

    sizes: Sizes
    embedding: Tensor
    head: Tensor
    norm: Tensor
    num_layers: int
    positions: int
    layers: tuple[int, ...]
    name: str
    config: dict[str, Any]

    @property
    def vocabulary(self) -> int:
        return self.embedding.shape[0]

    def states(self, batch: Batch, layers: tuple[int, ...]) -> Tensor:
        """The states [rows, T, len(layers) * width] of a batch."""
        assert batch.states is not None, "this recipe needs a recording of states"
        pieces = batch.states.split(self.sizes.width, dim=-1)
        return torch.cat([pieces[self.layers.index(layer)] for layer in layers], dim=-1)

    def directions(self, batch: Batch, taps: tuple[int, ...]) -> list[Tensor]:
        """The states after `taps` layers, each scaled to a mean square of 1, as a norm without weights makes them.

        That after the last layer is known from the final state, which is the same behind a norm.
        """
        return [rms(self._after(batch, tap), None, self.sizes.eps) for tap in taps]

    def _after(self, batch: Batch, tap: int) -> Tensor:
        if tap == self.num_layers and tap not in self.layers:
            return self.states(batch, (FINAL,)) / self.norm
        return self.states(batch, (tap,))

    @torch.no_grad()
    def logits(self, batch: Batch, vocabulary: Tensor | None = None) -> Tensor:
        """What the target thinks of the token behind each column from where answers begin [rows, A, vocab]."""
        final = self.states(batch, (FINAL,))[:, batch.begin : batch.begin + batch.anchors]
        return product(final, self.head if vocabulary is None else self.head[vocabulary])


def teacher_of(target: Target, layers: tuple[int, ...]) -> Teacher:
    """The teacher that a loaded native target makes."""
    config, model = target.config, target.model
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    sizes = Sizes(
        width=config.hidden_size,
        inner=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=dim,
        eps=config.rms_norm_eps,
        theta=float(config.rope_parameters["rope_theta"]),
    )
    return Teacher(
        sizes=sizes,
        embedding=model.embedding.clone(),  # out of inference mode
        head=model.head.clone(),
        norm=model.norm.clone(),  # type: ignore[attr-defined]
        num_layers=model.num_layers,
        positions=target.max_model_len,
        layers=layers,
        name=target.name,
        config={"eos_token_id": config.eos_token_id, "pad_token_id": config.pad_token_id},
    )


class Recipe(nn.Module, ABC):
    """A head in training. `method`: its canonical name; `peak`: the highest learning rate; `average`: what the averaged
    weights keep of themselves a step; `progress`: the share of the training that is done.
    """

    method: str = ""
    peak: float = 2e-3
    average: float = 0.998
    progress: float = 0.0

    def __init__(self, teacher: Teacher) -> None:
        super().__init__()
        self.teacher = teacher

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """A number to bring down."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """config.json of the published layout."""

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """The checkpoint's tensors of the recipe's `weights` by name; by default the same names."""
        return weights

    def layer_config(self, sizes: Sizes) -> dict[str, Any]:
        """The keys of a Llama-like config that all layouts with layers share."""
        return {
            "hidden_size": sizes.width, "intermediate_size": sizes.inner, "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.kv_heads, "head_dim": sizes.head_dim, "hidden_act": "silu",
            "rms_norm_eps": sizes.eps, "rope_theta": sizes.theta, "rope_scaling": None,
            "max_position_embeddings": self.teacher.positions, "vocab_size": self.teacher.vocabulary,
            "attention_bias": False, "tie_word_embeddings": False, "torch_dtype": "float16",
            **self.teacher.config,
        }  # fmt: skip


def surprise(scores: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Mean cross-entropy of `scores` [..., vocab] under the target's logits `wanted`, where `known`."""
    chosen = torch.nonzero(known.reshape(-1)).flatten()
    given = scores.reshape(-1, scores.shape[-1])[chosen].log_softmax(dim=-1)
    aim = wanted.reshape(-1, wanted.shape[-1])[chosen].softmax(dim=-1)
    return -(aim * given).sum(dim=-1).mean()


def falling(losses: list[Tensor], share: float) -> Tensor:
    """The mean of the losses of places ahead, each counting `share` of the one before it."""
    weights = [share**i for i in range(len(losses))]
    total: Tensor = torch.stack([w * loss for w, loss in zip(weights, losses, strict=True)]).sum() / sum(weights)
    return total
