"""EAGLE-3 and EAGLE-3.1 heads (arXiv 2503.01840, 2605.09992) in the layouts of SafeAILab/SpecForge (`midlayer.*`) and
speculators (`layers.0.*`).

States of several target layers are fused to one; the first layer's attention reads embedding and state side by side,
each behind its own norm. 3.1 norms each tapped state before the fusion, and hands on its output behind the norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.models.heads.files import HeadFiles, draft_vocabulary
from specctl.runtime.models.heads.taps import tap_layers
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.native import read_layer
from specctl.runtime.models.stack import LayerWeights, Place, Stack, StackShape
from specctl.runtime.models.weights import Weights

PARALLEL = "peagle"
_OLD_NORMS = ("aux_norm_low", "aux_norm_mid", "aux_norm_high")


@dataclass(frozen=True)
class Fusion:
    """From tapped states to one. ``weight`` None: a single state is taken as it is. ``whole_norm`` [taps * hidden] or
    ``piece_norms`` ([hidden] each) come before it.
    """

    weight: Tensor | None
    bias: Tensor | None
    whole_norm: Tensor | None
    piece_norms: tuple[Tensor, ...]
    eps: float

    def __call__(self, hidden: Tensor) -> Tensor:
        """``hidden`` [T, taps * hidden] to [T, width]."""
        if self.whole_norm is not None:
            hidden = F.rms_norm(hidden, self.whole_norm.shape, self.whole_norm, self.eps)
        elif self.piece_norms:
            pieces = hidden.chunk(len(self.piece_norms), dim=-1)
            normed = [F.rms_norm(x, w.shape, w, self.eps) for x, w in zip(pieces, self.piece_norms, strict=True)]
            hidden = torch.cat(normed, dim=-1)
        return hidden if self.weight is None else F.linear(hidden, self.weight, self.bias)


@dataclass(frozen=True)
class Eagle3Weights:
    """Norms [width] of the first layer's two inputs and of the output, and the two switches of the layouts.

    ``normed_residual``: the stream goes on from the state behind its norm; ``feeds_normed``: so does the next row.
    """

    token_norm: Tensor
    state_norm: Tensor
    norm: Tensor
    normed_residual: bool
    feeds_normed: bool


class Eagle3Head(RecurrentHead):
    """See the module; ``parts`` are its own weights beside the stack's."""

    def __init__(
        self,
        hidden_layers: tuple[int, ...],
        stack: Stack,
        embedding: Tensor,
        head: Tensor,
        vocabulary: Tensor | None,
        fusion: Fusion,
        parts: Eagle3Weights,
    ) -> None:
        super().__init__(hidden_layers, stack, embedding, head, vocabulary)
        self._fusion = fusion
        self._parts = parts

    def enter(self, hidden: Tensor) -> Tensor:
        return self._fusion(hidden)

    def body(self, embedded: Tensor, states: Tensor, place: Place) -> Tensor:
        stack, parts = self.stack, self._parts
        normed = stack.norm(states, parts.state_norm)
        pair = torch.cat([stack.norm(embedded, parts.token_norm), normed], dim=-1)
        out = (normed if parts.normed_residual else states) + stack.attention(0, pair, place)
        out = stack.mlp(0, out)
        for index in range(1, len(stack.layers)):
            out = stack.layer(index, out, place)
        return out

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        normed = self.stack.norm(out, self._parts.norm)
        return normed, normed if self._parts.feeds_normed else out


def load_eagle3(files: HeadFiles, taps: Sequence[int] | None = None) -> Eagle3Head:
    """``taps`` override the checkpoint's own. Raises MissingError or DamagedError for tensors that are absent or do not
    fit, SpecctlError for taps that could mean two things.
    """
    weights = files.weights
    config = files.layer_config(files.layers)
    width = config.hidden_size
    first = "midlayer." if "midlayer.self_attn.q_proj.weight" in weights else "layers.0."
    stated = files.num_layers(files.layers)
    shape = files.shape(config, stated)
    layers = _layers(weights, first, shape, stated)
    head = weights.finite("lm_head.weight", None, width)
    hidden_layers = tap_layers(files, taps) if _tapped(files) else (FINAL,)
    stack = files.stack(config, shape, layers, [head])
    return Eagle3Head(
        hidden_layers,
        stack,
        files.embedding(width, "embed_tokens.weight"),
        head,
        draft_vocabulary(files, head.shape[0]),
        _fusion(files, len(hidden_layers), width, shape.norm_eps),
        _parts(files, first, width),
    )


def load_stand_ins(files: HeadFiles, head: Eagle3Head) -> tuple[int, Tensor]:
    """What a parallel head reads where there is no token and no state yet: a token id, and [taps * hidden].

    Raises DamagedError where the checkpoint's own do not fit.
    """
    wide = len(head.hidden_layers) * files.target.embedding.shape[1]
    mask = files.mask_token_id
    if mask is None or not 0 <= mask < head.embedding.shape[0]:
        raise files.refuse(f"mask_token_id is {mask}; wanted an id below {head.embedding.shape[0]}")
    return mask, files.weights.finite("mask_hidden", 1, 1, wide).view(1, wide)


def _layers(weights: Weights, first: str, shape: StackShape, count: int) -> list[LayerWeights]:
    """The first layer reads two widths, its norms are the head's own; further ones name their first norm either way."""
    layers = [read_layer(weights, first, shape, entering=2 * shape.hidden_size, input_norm=None)]
    for i in range(1, count):
        name = "input_layernorm" if f"layers.{i}.input_layernorm.weight" in weights else "hidden_norm"
        layers.append(read_layer(weights, f"layers.{i}.", shape, input_norm=name))
    return layers


def _tapped(files: HeadFiles) -> bool:
    used = files.part("eagle_config").get("use_aux_hidden_state")
    if used is not None and not isinstance(used, bool):
        raise files.refuse(f"use_aux_hidden_state is {used!r}; wanted true or false")
    return used is not False


def _fusion(files: HeadFiles, num_taps: int, width: int, eps: float) -> Fusion:
    weights, hidden = files.weights, files.target.embedding.shape[1]
    old = [f"{name}.weight" for name in _OLD_NORMS]
    names = old if old[0] in weights else [f"fc_norm.{i}.weight" for i in range(num_taps)]
    pieces = tuple(weights.get(name, hidden) for name in names) if names[0] in weights else ()
    if "fc.weight" not in weights and num_taps == 1 and hidden == width:
        return Fusion(None, None, None, pieces, eps)
    return Fusion(
        weight=weights.finite("fc.weight", width, num_taps * hidden),
        bias=weights.find("fc.bias", width),
        whole_norm=weights.find("input_norm.weight", num_taps * hidden),
        piece_norms=pieces,
        eps=eps,
    )


def _parts(files: HeadFiles, first: str, width: int) -> Eagle3Weights:
    """The switches mean different things in different layouts: `norm_output` of a checkpoint without per-piece norms
    only says that the norm before the vocabulary head exists; vLLM takes a missing `norm_before_residual` as true for
    the speculators layout, but as false for its parallel heads.
    """
    weights, kind = files.weights, files.config.get("speculators_model_type")
    speculators = kind is not None
    newer = speculators or "fc_norm.0.weight" in weights
    return Eagle3Weights(
        token_norm=weights.get(f"{first}input_layernorm.weight", width),
        state_norm=weights.get(f"{first}hidden_norm.weight", width),
        norm=weights.get("norm.weight", width),
        normed_residual=files.flag("norm_before_residual", speculators and kind != PARALLEL),
        feeds_normed=files.flag("norm_output", False) and newer,
    )
