"""EAGLE-1 and EAGLE-2 heads (arXiv 2401.15077, 2406.16858; the layout of SafeAILab/EAGLE): the same checkpoints, the
second only drafts trees. A row fuses embedding and feature, runs an ordinary layer whose first norm is left out, and is
itself the next feature. Features are the target's states after its final norm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.errors import SpecctlError
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


# Of a variant with more norms, which neither the papers nor their checkpoints have; left out, it would draft badly.
_EXTRA_NORMS = (
    "norm", "embed_layernorm", "embedding_layernorm", "post_embedding_layernorm", "hidden_layernorm",
    "lm_head_layernorm", "pre_lm_head_layernorm", "layers.0.input_layernorm", "transformer.input_layernorm",
)  # fmt: skip


def load_eagle(files: HeadFiles) -> EagleHead:
    """In SafeAILab's names, or in those of speculators (`fusion_fc`, `transformer.` for the one layer).

    Raises MissingError or DamagedError for tensors that are absent or do not fit the config or the target, SpecctlError
    for a variant with more norms.
    """
    weights, raw = files.weights, files.layers
    config = files.layer_config(raw)
    width = config.hidden_size
    head = files.target.head
    if head.shape[1] != width:
        raise files.refuse(f"hidden_size is {width}, the target's is {head.shape[1]}", OTHER_TARGET)
    _check_norms(files)
    converted = "fusion_fc.weight" in weights
    fused, first = ("fusion_fc", "transformer.") if converted else ("fc", "layers.0.")
    num_layers = files.num_layers(raw)
    shape = files.shape(config, num_layers)
    layers = [read_layer(weights, first, shape, input_norm=None)]
    layers += [read_layer(weights, f"layers.{i}.", shape) for i in range(1, num_layers)]
    fusion = weights.finite(f"{fused}.weight", width, 2 * width)
    bias = weights.find(f"{fused}.bias", width)
    stack = files.stack(config, shape, layers, [head, fusion])
    return EagleHead(stack, files.embedding(width, "embed_tokens.weight"), head, fusion, bias)


def _check_norms(files: HeadFiles) -> None:
    found = next((name for name in _EXTRA_NORMS if f"{name}.weight" in files.weights), None)
    if found is not None or files.flag("layernorms", False):
        raise SpecctlError(
            f"{files.folder} is an EAGLE head with norms that EAGLE-1 and EAGLE-2 do not have: "
            + (f"tensor '{found}.weight'" if found else "config.json says layernorms true"),
            help="heads as the EAGLE and HASS papers publish them run here, and EAGLE-3 heads",
        )
