"""Multi-token-prediction layers: one decoder layer over [embedding, hidden state], shipped inside the target.

The families differ in tensor names, in which half of the fusion comes first and in what the next row gets; those
differences are a table. Sources: the families' own model code, vLLM's and SGLang's loaders (facts, A3).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.native import read_layer
from specctl.runtime.models.stack import Place, Stack


@dataclass(frozen=True)
class MtpLayout:
    """Names of one family's tensors, ``{n}`` for the number of target layers.

    ``hidden_first``: the state is the fusion's first half. ``feeds_normed``: the next row gets the output behind the
    final norm. ``blanks_first``: the embedding at position 0 counts as zeros. ``gated``: attention with an output gate.
    ``norm_offset``: 1 where norms are stored as differences from 1.
    """

    family: str
    token_norm: str
    state_norm: str
    fusion: str
    layer: str
    final_norm: str | None
    hidden_first: bool = False
    feeds_normed: bool = True
    blanks_first: bool = False
    gated: bool = False
    norm_offset: float = 0.0


_DEEPSEEK = MtpLayout(
    "deepseek",
    "model.layers.{n}.enorm.weight",
    "model.layers.{n}.hnorm.weight",
    "model.layers.{n}.eh_proj.weight",
    "model.layers.{n}.",
    "model.layers.{n}.shared_head.norm.weight",
    blanks_first=True,
)
_GLM = MtpLayout(**{**vars(_DEEPSEEK), "family": "glm", "feeds_normed": False})
LAYOUTS = (
    _DEEPSEEK,
    MtpLayout(
        "qwen3_next",
        "mtp.pre_fc_norm_embedding.weight",
        "mtp.pre_fc_norm_hidden.weight",
        "mtp.fc.weight",
        "mtp.layers.0.",
        "mtp.norm.weight",
        gated=True,
        norm_offset=1.0,
    ),
    MtpLayout(
        "mimo",
        "model.mtp_layers.0.token_layernorm.weight",
        "model.mtp_layers.0.hidden_layernorm.weight",
        "model.mtp_layers.0.input_proj.weight",
        "model.mtp_layers.0.",
        "model.mtp_layers.0.final_layernorm.weight",
        hidden_first=True,
        blanks_first=True,
    ),
    MtpLayout(
        "ernie",
        "model.mtp_emb_norm.0.weight",
        "model.mtp_hidden_norm.0.weight",
        "model.mtp_linear_proj.0.weight",
        "model.mtp_block.0.",
        None,
        feeds_normed=False,
        blanks_first=True,
    ),
)


@dataclass(frozen=True)
class MtpWeights:
    """``fusion`` [width, 2 * width]; norms [width], ``final_norm`` None where the layer's output is scored as it is."""

    token_norm: Tensor
    state_norm: Tensor
    fusion: Tensor
    final_norm: Tensor | None


class MtpHead(RecurrentHead):
    """One layer, used again for each further token."""

    def __init__(self, layout: MtpLayout, stack: Stack, embedding: Tensor, head: Tensor, parts: MtpWeights) -> None:
        super().__init__((FINAL,), stack, embedding, head)
        self._layout = layout
        self._parts = parts

    def body(self, embedded: Tensor, states: Tensor, place: Place) -> Tensor:
        parts, stack = self._parts, self.stack
        if self._layout.blanks_first:
            embedded = embedded.masked_fill(place.plan.positions.unsqueeze(-1) == 0, 0.0)
        pair = [stack.norm(embedded, parts.token_norm), stack.norm(states, parts.state_norm)]
        if self._layout.hidden_first:
            pair.reverse()
        return stack.run(stack.linear(torch.cat(pair, dim=-1), parts.fusion), place)

    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        scored = out if self._parts.final_norm is None else self.stack.norm(out, self._parts.final_norm)
        return scored, scored if self._layout.feeds_normed else out


def load_mtp(files: HeadFiles) -> MtpHead:
    """Raises SpecctlError for a folder without such layers or with a kind of layer that does not run here (experts,
    latent attention), MissingError or DamagedError for tensors that are absent or do not fit.
    """
    nested = files.config.get("text_config")
    raw = nested if isinstance(nested, dict) else files.config
    layout, names = _layout(files, files.num_layers(raw), str(raw.get("model_type", "")))
    config = files.layer_config(raw)
    width, weights = config.hidden_size, files.weights
    shape = files.shape(config, 1)
    layer = read_layer(weights, names["layer"], shape, gated=layout.gated, norm_offset=layout.norm_offset)
    head = files.target.head
    if head.shape[1] != width:
        raise files.refuse(f"hidden_size is {width}, the target's is {head.shape[1]}")
    offset = layout.norm_offset
    final = names.get("final_norm")
    parts = MtpWeights(
        token_norm=weights.get(names["token_norm"], width) + offset,
        state_norm=weights.get(names["state_norm"], width) + offset,
        fusion=weights.finite(names["fusion"], width, 2 * width),
        final_norm=None if final is None else weights.get(final, width) + offset,
    )
    stack = files.stack(config, shape, [layer], [head, parts.fusion])
    return MtpHead(layout, stack, files.embedding(width), head, parts)


def _layout(files: HeadFiles, num_layers: int, model_type: str) -> tuple[MtpLayout, dict[str, str]]:
    """The layout whose fusion the checkpoint has, and its names filled in."""
    for layout in LAYOUTS:
        if layout.fusion.format(n=num_layers) in files.weights:
            chosen = _GLM if layout is _DEEPSEEK and model_type.startswith("glm") else layout
            named = ("token_norm", "state_norm", "fusion", "layer", "final_norm")
            texts = {key: getattr(chosen, key) for key in named}
            names = {key: text.format(n=num_layers) for key, text in texts.items() if text is not None}
            _check_kind(files, names["layer"])
            return chosen, names
    raise SpecctlError(
        f"{files.folder} has no prediction layer in a layout known here ({', '.join(x.family for x in LAYOUTS)}, glm)",
        help="checkpoints are often published without these layers; look for mtp tensors in its index",
    )


def _check_kind(files: HeadFiles, layer: str) -> None:
    for part, kind in (("self_attn.kv_a_proj_with_mqa.weight", "latent attention"), ("mlp.gate.weight", "experts")):
        if layer + part in files.weights:
            raise SpecctlError(
                f"the prediction layer of {files.folder} has {kind}, which the bundled runtime does not run",
                help="run this setting on the engine it is for",
            )
