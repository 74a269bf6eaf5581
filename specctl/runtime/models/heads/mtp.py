"""Multi-token-prediction layers: decoder layers over [embedding, hidden state], shipped inside the target.

The families differ in tensor names, in which half of the fusion comes first and in what the next row gets; those
differences are a table, see `specctl.modelinfo.mtp_layouts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.modelinfo.mtp_layouts import MtpLayout, find_layers
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.flat import FlatModel
from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.heads.network_layers import load_network_layers
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.native import read_layer


@dataclass(frozen=True)
class MtpWeights:
    """What a prediction layer has around its decoder layer: ``fusion`` [width, 2 * width] and norms [width],
    ``final_norm`` None where the layer's output is scored as it is.
    """

    token_norm: Tensor
    state_norm: Tensor
    fusion: Tensor
    final_norm: Tensor | None


class MtpHead(RecurrentHead):
    """One prediction layer, layer ``index`` of a stack that may hold several. ``blanks_first``: see `MtpLayout`."""

    def __init__(
        self,
        layout: MtpLayout,
        stack: Any,
        index: int,
        embedding: Tensor,
        head: Tensor,
        parts: MtpWeights,
        blanks_first: bool,
    ) -> None:
        super().__init__((FINAL,), stack, embedding, head)
        self._layout = layout
        self._index = index
        self._parts = parts
        self._blanks_first = blanks_first

    @torch.inference_mode()
    def run(self, tokens: Sequence[int], states: Tensor, spans: Sequence[Span], cache: Any) -> tuple[Tensor, Tensor]:
        """As `forward`, of all rows, but what `score` takes instead of logits: [T, width] each."""
        embedded = F.embedding(torch.tensor(tokens, device=self.embedding.device), self.embedding)
        return self.leave(self.body(embedded, states, self.stack.place(spans, cache)))

    def score(self, rows: Tensor) -> Tensor:
        """Logits [n, vocab] of ``rows`` [n, width] from `run`."""
        return self.stack.linear(rows, self.head)

    def body(self, embedded: Tensor, states: Tensor, place: Any) -> Tensor:
        parts, stack = self._parts, self.stack
        if self._blanks_first:
            embedded = embedded.masked_fill(place.plan.positions.unsqueeze(-1) == 0, 0.0)
        pair = [stack.norm(embedded, parts.token_norm), stack.norm(states, parts.state_norm)]
        if self._layout.hidden_first:
            pair.reverse()
        return stack.layer(self._index, stack.linear(torch.cat(pair, dim=-1), parts.fusion), place)

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        scored = out if self._parts.final_norm is None else self.stack.norm(out, self._parts.final_norm)
        return scored, scored if self._layout.feeds_normed else out


def load_mtp(files: HeadFiles) -> tuple[list[MtpHead], tuple[str, ...]]:
    """The prediction layers, the first first, and what there is to say about them. They share one stack, so that a
    cache of any of them serves all.

    Raises SpecctlError for a folder without such layers or with a kind of layer that the target does not have,
    MissingError or DamagedError for tensors that are absent or do not fit.
    """
    raw = {**files.config, **files.part("text_config"), **files.part("transformer_layer_config")}
    num_layers = files.num_layers(raw)
    found = find_layers(raw, files.weights.names(), num_layers, str(files.folder))
    names = [found.layout.names(num_layers, index) for index in range(found.count)]
    width, layout = files.target.head.shape[1], found.layout
    if raw.get("hidden_size") != width:
        raise files.refuse(f"hidden_size is {raw.get('hidden_size')}, the target's is {width}")
    parts = [_parts(files, layout, each, width) for each in names]
    adapted = layout.own_kind and isinstance(files.target, FlatModel)
    if adapted:
        stack: Any = load_network_layers(files, raw, [each["layer"] for each in names])
    else:
        stack = _native_layers(files, raw, layout, names, parts)
    # transformers, whose layers these are, does not blank the first row; the difference is in one row's keys alone.
    blanks = layout.blanks_first and not adapted
    shared = files.embedding(width), files.target.head
    heads = [MtpHead(layout, stack, index, *shared, part, blanks) for index, part in enumerate(parts)]
    return heads, found.notes


def _parts(files: HeadFiles, layout: MtpLayout, names: dict[str, str], width: int) -> MtpWeights:
    weights, offset = files.weights, layout.norm_offset
    final = names.get("final_norm")
    if final is not None and final not in weights:
        final = final.replace("shared_head.", "transformer.shared_head.")
    return MtpWeights(
        token_norm=weights.get(names["token_norm"], width) + offset,
        state_norm=weights.get(names["state_norm"], width) + offset,
        fusion=weights.finite(names["fusion"], width, 2 * width),
        final_norm=None if final is None else weights.get(final, width) + offset,
    )


def _native_layers(
    files: HeadFiles, raw: Any, layout: MtpLayout, names: list[dict[str, str]], parts: list[MtpWeights]
) -> Any:
    for each in names:
        _check_kind(files, each["layer"])
    config = files.layer_config(raw)
    shape = files.shape(config, len(names))
    layers = [
        read_layer(files.weights, each["layer"], shape, gated=layout.gated, norm_offset=layout.norm_offset)
        for each in names
    ]
    return files.stack(config, shape, layers, [files.target.head, *(part.fusion for part in parts)])


def _check_kind(files: HeadFiles, layer: str) -> None:
    for part, kind in (("self_attn.kv_a_proj_with_mqa.weight", "latent attention"), ("mlp.gate.weight", "experts")):
        if layer + part in files.weights:
            raise SpecctlError(
                f"the prediction layer of {files.folder} has {kind}, the target's layers have none",
                help="these layers belong to the checkpoint that ships them: is this the target's own?",
            )
