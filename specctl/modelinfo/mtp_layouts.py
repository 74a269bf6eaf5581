"""Where the families keep their prediction layers, and what differs between them beside the names.

Sources: the families' own model code, transformers' `MtpModel`, vLLM's and SGLang's loaders.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from specctl.errors import DamagedError, SpecctlError

COUNT_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")


@dataclass(frozen=True)
class MtpLayout:
    """Names of one family's tensors; ``{n}`` is the number of target layers plus that of the prediction layer, ``{i}``
    the number of the prediction layer.

    ``hidden_first``: the state is the fusion's first half. ``feeds_normed``: the next row gets the output behind the
    final norm. ``blanks_first``: the embedding at position 0 counts as zeros. ``gated``: attention with an output gate.
    ``norm_offset``: 1 where norms are stored as differences from 1. ``own_kind``: the layer is of the kind of the
    target's layers, else one of Llama's.
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
    own_kind: bool = True

    def names(self, num_layers: int, index: int) -> dict[str, str]:
        """The names of prediction layer ``index`` behind ``num_layers`` target layers."""
        parts = ("token_norm", "state_norm", "fusion", "layer", "final_norm")
        texts = {part: getattr(self, part) for part in parts}
        return {part: text.format(n=num_layers + index, i=index) for part, text in texts.items() if text is not None}

    def count(self, stored: Collection[str], num_layers: int) -> int:
        """Prediction layers of this layout among the tensors ``stored``."""
        numbered = self.fusion != self.fusion.format(n="", i="")
        found = 0
        while self.names(num_layers, found)["fusion"] in stored and (numbered or found == 0):
            found += 1
        return found

    def lacking(self, stored: Collection[str], num_layers: int, index: int) -> str | None:
        """The first tensor of prediction layer ``index`` that is absent; None where none is. Of the layer itself only
        its attention and feed-forward part are looked for: their tensors differ from family to family.
        """
        names = self.names(num_layers, index)
        layer = names.pop("layer")
        for name in names.values():
            if name not in stored and name.replace("shared_head.", "transformer.shared_head.") not in stored:
                return name
        for parts in (("self_attn.",), ("mlp.", "moe.")):
            starts = tuple(layer + inner + part for part in parts for inner in ("", "transformer."))
            if not any(name.startswith(starts) for name in stored):
                return f"{starts[0]}*"
        return None


_DEEPSEEK = MtpLayout(
    "deepseek",
    "model.layers.{n}.enorm.weight",
    "model.layers.{n}.hnorm.weight",
    "model.layers.{n}.eh_proj.weight",
    "model.layers.{n}.",
    "model.layers.{n}.shared_head.norm.weight",
    blanks_first=True,
)
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
    # The export of speculators: the tensors of qwen3_next under other names.
    MtpLayout(
        "speculators",
        "mtp_layers.{i}.token_layernorm.weight",
        "mtp_layers.{i}.hidden_layernorm.weight",
        "mtp_layers.{i}.input_proj.weight",
        "mtp_layers.{i}.",
        "mtp_layers.{i}.final_layernorm.weight",
        gated=True,
        norm_offset=1.0,
    ),
    MtpLayout(
        "mimo",
        "model.mtp_layers.{i}.token_layernorm.weight",
        "model.mtp_layers.{i}.hidden_layernorm.weight",
        "model.mtp_layers.{i}.input_proj.weight",
        "model.mtp_layers.{i}.",
        "model.mtp_layers.{i}.final_layernorm.weight",
        hidden_first=True,
        blanks_first=True,
        own_kind=False,
    ),
    MtpLayout(
        "ernie",
        "model.mtp_emb_norm.{i}.weight",
        "model.mtp_hidden_norm.{i}.weight",
        "model.mtp_linear_proj.{i}.weight",
        "model.mtp_block.{i}.",
        None,
        feeds_normed=False,
        blanks_first=True,
        own_kind=False,
    ),
)
# DeepSeek's names with other habits, by the beginning of the model type.
_VARIANTS = {
    "glm": replace(_DEEPSEEK, family="glm", feeds_normed=False),
    "step3": replace(_DEEPSEEK, family="step3", norm_offset=1.0),
}


@dataclass(frozen=True)
class Found:
    """The layout of a checkpoint, how many of its layers are used, and what there is to say about that."""

    layout: MtpLayout
    count: int
    notes: tuple[str, ...] = ()


def find_layers(raw: Mapping[str, Any], stored: Collection[str], num_layers: int, folder: str) -> Found:
    """The prediction layers of a checkpoint whose text config is ``raw``, told by its tensors' names.

    The tensors decide where the config says otherwise, but no more layers are used than it counts. Raises DamagedError
    where the config counts layers that are not there, SpecctlError where neither knows of any.
    """
    key = next((key for key in COUNT_KEYS if key in raw), None)
    stated = raw[key] if key else None
    if stated is not None and (type(stated) is not int or stated < 0):
        raise DamagedError(f"{folder}/config.json: {key} is {stated!r}; wanted a whole number")
    for layout in LAYOUTS:
        found = layout.count(stored, num_layers)
        if found:
            notes = _notes(key, stated, found)
            return Found(_variant(layout, str(raw.get("model_type", ""))), min(found, stated or found), notes)
    looked = "looked for " + ", ".join(layout.names(num_layers, 0)["fusion"] for layout in LAYOUTS)
    if odd := fault_of(stored, num_layers):
        raise DamagedError(f"{folder}: {odd}", help="config.json and weights are of different models; take both again")
    if stated:
        raise DamagedError(
            f"{folder}: config.json says {key} {stated}, but the weights hold no prediction layer ({looked})",
            help="the checkpoint was published or converted without these layers; take the original, or another method",
        )
    raise SpecctlError(
        f"{folder} has no prediction layer: config.json counts none and the weights hold none ({looked})",
        help="checkpoints are often published without these layers; look for mtp tensors in its index",
    )


def count_layers(stored: Collection[str], num_layers: int) -> int:
    """Prediction layers among the tensors ``stored``, in whichever known layout."""
    return max(layout.count(stored, num_layers) for layout in LAYOUTS)


def fault_of(stored: Collection[str], num_layers: int) -> str | None:
    """What is wrong with the prediction layers among the tensors ``stored``: one that is absent, or the wrong place.
    None where nothing is, or where there are no such layers.
    """
    for layout in LAYOUTS:
        for index in range(max(1, layout.count(stored, num_layers))):
            lacking = layout.lacking(stored, num_layers, index)
            own = layout.names(num_layers, index)
            norms = any(own.get(part) in stored for part in ("token_norm", "state_norm", "fusion"))
            if lacking and norms:
                return f"the prediction layer has no tensor {lacking!r}"
    pattern = re.compile(r"model\.layers\.(\d+)\.eh_proj\.weight")
    places = sorted(int(match[1]) for name in stored if (match := pattern.fullmatch(name)))
    if places and places[0] != num_layers:
        return (
            f"the tensors of the prediction layer are numbered {places[0]}; behind the {num_layers} layers that "
            f"config.json counts it would be {num_layers}"
        )
    return None


def _variant(layout: MtpLayout, model_type: str) -> MtpLayout:
    if layout is not _DEEPSEEK:
        return layout
    return next((v for start, v in _VARIANTS.items() if model_type.startswith(start)), layout)


def _notes(key: str | None, stated: Any, found: int) -> tuple[str, ...]:
    if stated is None or stated == found:
        return ()
    used = min(found, stated or found)
    return (f"config.json says {key} {stated}, the weights hold {found} prediction layers; {used} of them run",)
