"""EAGLE-1 and EAGLE-2 heads (arXiv 2401.15077, 2406.16858; the layout of SafeAILab/EAGLE): the same checkpoints, the
second only drafts trees. A row fuses embedding and feature, runs an ordinary layer whose first norm is left out, and is
itself the next feature. Features are the target's states after its final norm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.models.heads.files import OTHER_TARGET, HeadFiles
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.native import read_layer
from specctl.runtime.models.stack import Place, Stack


class EagleHead(RecurrentHead):
    """``fusion``: [width, 2 * width], the embedding's half first."""

    def __init__(self, stack: Stack, embedding: Tensor, head: Tensor, fusion: Tensor, bias: Tensor | None) -> None:
        super().__init__((FINAL,), stack, embedding, head)
        self._fusion = fusion
        self._bias = bias

    def body(self, embedded: Tensor, states: Tensor, place: Place) -> Tensor:
        fused = self.stack.linear(torch.cat([embedded, states], dim=-1), self._fusion, self._bias)
        return self.stack.run(fused, place)

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        return out, out


def load_eagle(files: HeadFiles) -> EagleHead:
    """Raises MissingError or DamagedError for tensors that are absent or do not fit the config or the target."""
    config = files.layer_config(files.config)
    width = config.hidden_size
    head = files.target.head
    if head.shape[1] != width:
        raise files.refuse(f"hidden_size is {width}, the target's is {head.shape[1]}", OTHER_TARGET)
    num_layers = files.num_layers(files.config)
    shape = files.shape(config, num_layers)
    layers = [
        read_layer(files.weights, f"layers.{i}.", shape, input_norm=None if i == 0 else "input_layernorm")
        for i in range(num_layers)
    ]
    fusion = files.weights.finite("fc.weight", width, 2 * width)
    bias = files.weights.find("fc.bias", width)
    stack = files.stack(config, shape, layers, [head, fusion])
    return EagleHead(stack, files.embedding(width, "embed_tokens.weight"), head, fusion, bias)
