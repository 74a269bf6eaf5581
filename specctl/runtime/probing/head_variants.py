"""The changes of heads that read the target's states, by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch

from specctl.errors import SpecctlError
from specctl.modelinfo.fit import TAP_KEY, layer_config_of, tap_ids
from specctl.modelinfo.mtp_layouts import find_layers
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.probing.variants import Head, Variant, other_ropes
from specctl.spec.methods import DFlash, Eagle3

_PARTS = "qkv"
_SHIFTS = {1: "each one later", -1: "each one earlier", 2: "each two later", -2: "each two earlier"}


def head_variants(head: Head) -> Iterator[Variant]:
    """Every change that the method and the checkpoint allow, the likeliest cause first."""
    for make in _MAKERS.get(head.spec.method.name, ()):
        yield from make(head)


def _taps(head: Head) -> Iterator[Variant]:
    """The layers counted in the other way, the usual ones, and the same ones in another order."""
    layers = head.target.model.num_layers
    read = head.layers
    if read is None:
        yield from _both_counts(head)
        return
    if FINAL in read:
        return
    tried = {tuple(tap + shift for tap in read): how for shift, how in _SHIFTS.items()}
    if head.spec.method.name == "eagle3" and len(read) == 3:
        tried.setdefault((2, layers // 2, layers - 3), "the usual ones")
    for order in permutations(read) if len(read) <= 3 else [read[::-1]]:
        tried.setdefault(order, "in another order")
    for taps, how in tried.items():
        if taps != read and min(taps) >= 0 and max(taps) <= layers:
            change = f"the states after layers {_listed(taps)} ({how})"
            yield Variant("tap layers", change, _tap_cure(head, read, taps), layers=taps)


def _both_counts(head: Head) -> Iterator[Variant]:
    """A head whose ids may mean two things, so that it cannot be loaded: each of them."""
    ids, method = tap_ids(_facts(head)), head.spec.method
    if ids is None or not isinstance(method, Eagle3):
        return
    for taps in (tuple(ids), tuple(each + 1 for each in ids)):
        if min(taps) >= 0 and max(taps) <= head.target.model.num_layers:
            setting = replace(head.spec, method=replace(method, aux_layers=taps))
            cure = f"set aux_layers: {_listed(taps)} in the setting"
            yield Variant("tap layers", f"the states after layers {_listed(taps)}", cure, spec=setting)


def _facts(head: Head) -> Any:
    from specctl.modelinfo.facts import ModelFacts

    return ModelFacts(head.folder.name, head.folder, head.config)


def _listed(taps: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, taps))}]"


def _tap_cure(head: Head, read: tuple[int, ...], taps: tuple[int, ...]) -> str:
    """In the count of whoever named the layers: the setting, else the head's own config."""
    method = head.spec.method
    if isinstance(method, Eagle3) and method.aux_layers:
        return f"set aux_layers: {_listed(taps)} in the setting"
    if isinstance(method, DFlash) and method.target_layer_ids:
        return f"set target_layer_ids: {_listed(tuple(tap - 1 for tap in taps))} in the setting"
    key, ids = _tap_key(head), tap_ids(_facts(head))
    less = read[0] - ids[0] if ids else 0
    return f'set "{key}": {_listed(tuple(tap - less for tap in taps))} in {head.path}'


def _tap_key(head: Head) -> str:
    """The key under which the config names its layers, or the one to write where it names none."""
    usual = "target_layer_ids" if isinstance(head.spec.method, DFlash) else TAP_KEY
    nested = [head.config.get(name) for name in ("eagle_config", "dflash_config")]
    places = [head.config, *(each for each in nested if isinstance(each, Mapping))]
    keys = (TAP_KEY, "aux_hidden_state_layer_ids", "target_layer_ids")
    return next((key for place in places for key in keys if place.get(key)), usual)


def _before_the_norm(head: Head) -> Iterator[Variant]:
    if head.layers == (FINAL,):
        last = head.target.model.num_layers
        change = "the target's last state before its final norm"
        cure = "train the head on the states behind the final norm, which engines hand to it"
        yield Variant("hidden state", change, cure, layers=(last,))


def _norms(head: Head) -> Iterator[Variant]:
    kind = head.config.get("speculators_model_type")
    for key, usual in (("norm_before_residual", kind is not None and kind != "peagle"), ("norm_output", False)):
        flipped = not bool(head.config.get(key, usual))
        yield head.configured("norm flags", f"{key}: {str(flipped).lower()}", {key: flipped})


def _halves(head: Head, names: tuple[str, ...], what: str) -> Iterator[Variant]:
    """Where token and state enter side by side, the two exchanged."""
    if not names or not all(name in head.weights for name in names):
        return
    stored = {name: head.weights.stored(name) for name in names}
    swapped = {name: torch.cat(t.chunk(2, dim=1)[::-1], dim=1) for name, t in stored.items()}
    change = f"the halves of {what} (token, hidden state) exchanged"
    yield head.edited("input order", change, swapped, f"exchange the column halves of {', '.join(names)}")


def _eagle_order(head: Head) -> Iterator[Variant]:
    yield from _halves(head, ("fc.weight",), "fc.weight")


def _eagle3_order(head: Head) -> Iterator[Variant]:
    first = "midlayer." if "midlayer.self_attn.q_proj.weight" in head.weights else "layers.0."
    yield from _halves(head, tuple(f"{first}self_attn.{part}_proj.weight" for part in _PARTS), "the first layer")


def _mtp_order(head: Head) -> Iterator[Variant]:
    nested = head.config.get("text_config")
    raw = {**head.config, **(nested if isinstance(nested, dict) else {})}
    num_layers = raw.get("num_hidden_layers", 1)
    try:
        found = find_layers(raw, head.weights.names(), num_layers, str(head.folder))
    except SpecctlError:
        return
    names = tuple(found.layout.names(num_layers, index)["fusion"] for index in range(found.count))
    yield from _halves(head, names, names[0])


def _vocabulary(head: Head) -> Iterator[Variant]:
    """The vocabulary map read in the other way."""
    if "d2t" in head.weights:
        stored = head.weights.stored("d2t")
        offsets = stored - torch.arange(len(stored), dtype=stored.dtype)
        cure = "store d2t as offsets (token id minus row)"
        yield head.edited("tokenizer", "d2t read as token ids, not as offsets", {"d2t": offsets}, cure)


def _embedding(head: Head) -> Iterator[Variant]:
    """The target's embedding instead of the head's own."""
    name = "embed_tokens.weight"
    if name in head.weights and tuple(head.weights.stored(name).shape) == tuple(head.target.model.embedding.shape):
        change = "the target's embedding instead of the head's own"
        yield head.edited("tokenizer", change, {name: None}, f"leave out {name}")


def _rope(head: Head) -> Iterator[Variant]:
    layer = layer_config_of(head.config)
    for keys in other_ropes(layer, head.target):
        nested = layer is not head.config
        told = {"transformer_layer_config": {**layer, **keys}} if nested else keys
        where = ", in transformer_layer_config," if nested else ""
        cure = f'set "rope_theta": {keys["rope_theta"]:g}{where} in {head.path}, and the target\'s rope_scaling'
        yield head.configured("rope", f"rope_theta {keys['rope_theta']:g} and scaling as the target", told, cure)


def _medusa_order(head: Head) -> Iterator[Variant]:
    """Each head one place earlier, and all of them from behind."""
    found = _numbered(head)
    if len(found) < 2:
        return
    later = {number: group for number, group in found.items() if number > 0}
    for order, how in ((list(later), "each one place earlier"), (list(found)[::-1], "the last first")):
        tensors = _renumbered(head, found, order)
        cure = f"number the heads {', '.join(map(str, order))} from 0 on"
        yield head.edited("head order", f"the heads in another order ({how})", tensors, cure)


def _numbered(head: Head) -> dict[int, dict[str, str]]:
    """The tensors of each head by number: names with ``{}`` in the number's place, and as they are."""
    groups: dict[int, dict[str, str]] = {}
    for name in head.weights.names():
        parts = name.split(".")
        at = next((place for place, part in enumerate(parts) if part.isdigit()), None)
        if at is not None:
            pattern = ".".join([*parts[:at], "{}", *parts[at + 1 :]])
            groups.setdefault(int(parts[at]), {})[pattern] = name
    return dict(sorted(groups.items()))


def _renumbered(head: Head, groups: Mapping[int, Mapping[str, str]], order: list[int]) -> dict[str, Any]:
    """All numbered tensors, so that head ``order[i]`` stands at place i and what is not in ``order`` goes."""
    tensors: dict[str, Any] = {name: None for group in groups.values() for name in group.values()}
    for place, number in enumerate(order):
        for pattern, name in groups[number].items():
            tensors[pattern.format(place)] = head.weights.stored(name)
    return tensors


def _scaled_input(head: Head) -> Iterator[Variant]:
    flipped = not bool(head.config.get("scale_input", False))
    yield head.configured("norm flags", f"scale_input: {str(flipped).lower()}", {"scale_input": flipped})


def _dflash_mask(head: Head) -> Iterator[Variant]:
    """The tokens that tokenizer and config name as masks or fillers."""
    own = head.config.get("dflash_config")
    nested = own if isinstance(own, Mapping) else {}
    used = nested.get("mask_token_id", head.config.get("mask_token_id"))
    tokens = head.target.tokenizer
    named = {getattr(tokens, "mask_token_id", None), tokens.pad_token_id, head.config.get("pad_token_id")}
    for mask in sorted(each for each in named if isinstance(each, int) and each != used):
        change = f"mask token {mask}"
        cure = f'set "mask_token_id": {mask} in dflash_config in {head.path}'
        yield head.configured("mask token", change, {"dflash_config": {**nested, "mask_token_id": mask}}, cure)


Maker = Callable[[Head], Iterator[Variant]]
_MAKERS: dict[str, tuple[Maker, ...]] = {
    "eagle": (_eagle_order, _embedding, _rope, _before_the_norm),
    "eagle3": (_taps, _norms, _eagle3_order, _vocabulary, _embedding, _rope, _before_the_norm),
    "mtp": (_mtp_order, _rope, _before_the_norm),
    "medusa": (_medusa_order, _before_the_norm),
    "mlp_speculator": (_scaled_input, _before_the_norm),
    "dflash": (_taps, _dflash_mask, _rope),
}
