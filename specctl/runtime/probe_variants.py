"""What can be changed about a draft without training it again: one change a variant, each a setting of its own.

A change of the checkpoint is a copy of its folder with another config.json or other tensors, so that what is measured
is exactly what the loader would read; the checkpoint itself stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.modelinfo.fit import layer_config_of, theta_of
from specctl.resources import resolve_model
from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.taps import tap_layers
from specctl.runtime.models.weights import Weights
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle3

Edit = Callable[[dict[str, Tensor]], dict[str, Tensor]]
FUSIONS = ("fc.weight",)


@dataclass(frozen=True)
class Variant:
    """``cause``: the name that the alarm has for it; ``change``: what was changed, in words."""

    cause: str
    change: str
    spec: SpecDecodeConfig


@dataclass(frozen=True)
class Draft:
    """A head's checkpoint as it stands, and ``place``, a folder for changed copies of it."""

    spec: SpecDecodeConfig
    folder: Path
    config: Mapping[str, Any]
    weights: Weights
    place: Path

    def changed(self, cause: str, change: str, config: Mapping[str, Any] | None = None, edit: Edit = dict) -> Variant:
        """A copy with other keys in its config, or other tensors."""
        made = self.place / f"{len(list(self.place.iterdir()))}"
        made.mkdir()
        (made / "config.json").write_text(json.dumps({**self.config, **(config or {})}), "utf-8")
        tensors = edit({name: self.weights.stored(name) for name in self.weights.names()})
        save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, made / "model.safetensors")
        return Variant(cause, change, replace(self.spec, model=str(made)))


def variants(target: Target, spec: SpecDecodeConfig, place: Path) -> Iterator[Variant]:
    """Every change that the method and the checkpoint allow, the likeliest cause first."""
    method = spec.method
    if isinstance(method, DraftModel):
        if not method.heterogeneous_vocab:
            joined = replace(method, heterogeneous_vocab=True)
            yield Variant("tokenizer", "vocabularies joined by their texts", replace(spec, method=joined))
        return
    if spec.model is None or method.name not in ("eagle", "eagle3"):
        return
    folder = resolve_model(spec.model)
    weights = Weights(folder, target.model.dtype, target.model.device, pickles=True)
    draft = Draft(spec, folder, json.loads((folder / "config.json").read_text("utf-8")), weights, place)
    if isinstance(method, Eagle3):
        yield from _taps(target, draft, method)
        yield from _norms(draft)
    yield from _orders(draft)
    yield from _tokens(draft, target)
    yield from _rope(draft, target)


def _taps(target: Target, draft: Draft, method: Eagle3) -> Iterator[Variant]:
    """The layers counted in the other way, the usual ones, and the same ones in the other order."""
    layers = target.model.num_layers
    usual = (2, layers // 2, layers - 3)
    try:
        files = open_head(str(draft.folder), target.model, target.max_model_len, method.name)
        taps = tap_layers(files, method.aux_layers)
    except SpecctlError:  # ids that may mean two things: both are tried
        nested = draft.config.get("eagle_config")
        places = (nested if isinstance(nested, Mapping) else {}, draft.config)
        taps = next((tuple(p[k]) for p in places for k in p if k == "eagle_aux_hidden_state_layer_ids" and p[k]), usual)
    tried = {
        "ids counted from the layer's output (one more)": tuple(tap + 1 for tap in taps),
        "ids counted from the layer's input (one less)": tuple(tap - 1 for tap in taps),
        "two layers on": tuple(tap + 2 for tap in taps),
        "two layers back": tuple(tap - 2 for tap in taps),
        "the usual layers": usual,
    }
    known = {taps}
    for change, ids in tried.items():
        if ids not in known and len(ids) == len(taps) and min(ids) >= 0 and max(ids) <= layers:
            known.add(ids)
            method_there = replace(method, aux_layers=ids)
            yield Variant("tap layers", f"{change}: {list(ids)}", replace(draft.spec, method=method_there))
    turned = replace(method, aux_layers=taps[::-1])
    if len(set(taps)) > 1:
        change = f"states joined in the other order: {list(taps[::-1])}"
        yield Variant("input order", change, replace(draft.spec, method=turned))


def _norms(draft: Draft) -> Iterator[Variant]:
    speculators = draft.config.get("speculators_model_type") is not None
    default = speculators and draft.config.get("speculators_model_type") != "peagle"
    for key, usual in (("norm_before_residual", default), ("norm_output", False)):
        flipped = not bool(draft.config.get(key, usual))
        yield draft.changed("norm flags", f"{key}: {str(flipped).lower()}", {key: flipped})


def _orders(draft: Draft) -> Iterator[Variant]:
    """Where token and state enter side by side, the two exchanged."""
    if draft.spec.method.name == "eagle":
        names = tuple(name for name in FUSIONS if name in draft.weights)
        what = "fc.weight"
    else:
        first = "midlayer." if "midlayer.self_attn.q_proj.weight" in draft.weights else "layers.0."
        names = tuple(f"{first}self_attn.{part}_proj.weight" for part in "qkv")
        what = "the first layer"
    if all(name in draft.weights for name in names) and names:

        def edit(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            swapped = {name: torch.cat(tensors[name].chunk(2, dim=1)[::-1], dim=1) for name in names}
            return tensors | swapped

        yield draft.changed("input order", f"the halves of {what} (token, hidden state) exchanged", None, edit)


def _tokens(draft: Draft, target: Target) -> Iterator[Variant]:
    """The vocabulary map read in the other way, and the target's embedding instead of the head's own."""
    if "d2t" in draft.weights:

        def as_offsets(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
            stored = tensors["d2t"]
            return tensors | {"d2t": stored - torch.arange(len(stored), dtype=stored.dtype)}

        yield draft.changed("tokenizer", "d2t read as token ids, not as offsets", None, as_offsets)
    name = "embed_tokens.weight"
    if name in draft.weights and tuple(draft.weights.stored(name).shape) == tuple(target.model.embedding.shape):
        yield draft.changed(
            "tokenizer", "the target's embedding instead of the head's own", None,
            lambda tensors: {key: value for key, value in tensors.items() if key != name},
        )  # fmt: skip


def _rope(draft: Draft, target: Target) -> Iterator[Variant]:
    inner = draft.config.get("transformer_layer_config")
    layer = layer_config_of(draft.config)
    wanted = theta_of(target.config.to_dict())
    if wanted is None or theta_of(layer) == wanted:
        return
    keys = {key: value for key, value in layer.items() if key != "rope_parameters"} | {"rope_theta": wanted}
    changed = {"transformer_layer_config": keys} if isinstance(inner, Mapping) else {**keys, "rope_parameters": None}
    yield draft.changed("rope", f"rope_theta {wanted:g}, the target's", changed)
