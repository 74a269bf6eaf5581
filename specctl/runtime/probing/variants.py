"""What can be changed about a draft without training it again: one change a variant, the likeliest cause first.

Heads are changed in memory: other states of the target, other keys of their config, other tensors. Drafts that are
models get a folder with another config.json beside links to their files. The checkpoint itself stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specctl.errors import SpecctlError
from specctl.resources import resolve_model
from specctl.runtime.models.heads.files import Changes
from specctl.runtime.models.loading import model_folder
from specctl.runtime.models.native import ROPE_TYPES
from specctl.runtime.models.weights import Weights
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Pard

Config = Mapping[str, Any]
_ROPE_KEYS = ("rope_theta", "rope_scaling", "rope_parameters")
_USUAL_THETA = 10000.0


@dataclass(frozen=True)
class Variant:
    """``cause``: the name that the alarm has for it; ``change``: what was changed, in words; ``cure``: what to write
    where. Of ``spec`` (another setting), ``changes`` (of a head's files) and ``layers`` (other states of the target
    are handed to the head than it asks for) those are set that differ.
    """

    cause: str
    change: str
    cure: str
    spec: SpecDecodeConfig | None = None
    changes: Changes | None = None
    layers: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Head:
    """A head's files as they are; ``layers``: the states of ``target`` that it reads, None where it cannot be
    loaded.
    """

    spec: SpecDecodeConfig
    target: Target
    folder: Path
    config: Config
    weights: Weights
    layers: tuple[int, ...] | None

    @property
    def path(self) -> Path:
        return self.folder / "config.json"

    def configured(self, cause: str, change: str, keys: Config, cure: str | None = None) -> Variant:
        """With other ``keys`` in its config."""
        changes = Changes({**self.config, **keys}, self.weights)
        return Variant(cause, change, cure or _set(keys, self.path), changes=changes)

    def edited(self, cause: str, change: str, tensors: Mapping[str, Any], cure: str) -> Variant:
        """With other ``tensors``; None: without."""
        changes = Changes(self.config, self.weights.changed(tensors))
        return Variant(cause, change, f"{cure} in the weights in {self.folder}", changes=changes)


def open_draft(target: Target, spec: SpecDecodeConfig, layers: tuple[int, ...] | None) -> Head | None:
    """The files of the head that ``spec`` names, or that lies in the target; None where there is none to be read."""
    folder = target.folder if spec.model is None else resolve_model(spec.model)
    path = folder / "config.json"
    if not path.is_file():
        return None
    try:
        config = json.loads(path.read_text("utf-8"))
        weights = Weights(folder, target.model.dtype, target.model.device, pickles=True)
    except (ValueError, SpecctlError):
        return None
    return Head(spec, target, folder, config, weights, layers) if isinstance(config, dict) else None


def model_variants(target: Target, spec: SpecDecodeConfig, place: Path, loaded: bool) -> Iterator[Variant]:
    """Of a draft that is a model of its own; ``place``: a folder for changed copies; ``loaded``: whether it can be
    loaded as it is.
    """
    method = spec.method
    if isinstance(method, DraftModel) and not method.heterogeneous_vocab and not loaded:
        joined = replace(spec, method=replace(method, heterogeneous_vocab=True))
        cure = "set heterogeneous_vocab: true in the setting"
        yield Variant("tokenizer", "vocabularies joined by their texts", cure, spec=joined)
    if spec.model is None:
        return
    folder = model_folder(spec.model)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    changes = [
        ("rope", f"rope_theta {keys['rope_theta']:g}, the target's", keys) for keys in other_ropes(config, target)
    ]
    if isinstance(method, Pard):
        changes += [("mask token", f"mask token {mask}", {"pard_token": mask}) for mask in _masks(config, target)]
    for cause, change, keys in changes:
        made = _linked(folder, {**config, **keys}, place)
        found = replace(spec, model=str(made))
        if isinstance(method, Pard):
            found = replace(found, method=replace(method, mask_token_id=None))
        yield Variant(cause, change, _set(keys, folder / "config.json"), spec=found)


def _set(keys: Config, path: Path) -> str:
    """What to write into a config."""
    told = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in keys.items())
    return f"set {told} in {path}"


def _linked(folder: Path, config: Config, place: Path) -> Path:
    """The files of ``folder`` under another config.json."""
    made = place / f"{len(list(place.iterdir()))}"
    made.mkdir()
    for file in folder.iterdir():
        if file.name != "config.json":
            (made / file.name).symlink_to(file.resolve())
    (made / "config.json").write_text(json.dumps(config), "utf-8")
    return made


def _masks(config: Config, target: Target) -> list[int]:
    """Tokens that drafts of this kind use as masks: what the config and the target's tokenizer name besides."""
    tokens = target.tokenizer
    named = [config.get(key) for key in ("pard_token", "mask_token_id", "ptd_token_id", "pad_token_id")]
    named += [getattr(tokens, "mask_token_id", None), tokens.pad_token_id]
    used = next((each for each in named if isinstance(each, int)), None)
    return sorted({each for each in named if isinstance(each, int)} - {used})


def other_ropes(layer: Config, target: Target) -> list[dict[str, Any]]:
    """The target's rotations as keys of a config, where those of ``layer`` are others and a head can have them."""
    wanted = rope_of(target.config.to_dict())
    if wanted is None or wanted.get("rope_type") not in ROPE_TYPES or rope_of(layer) == wanted:
        return []
    theta = wanted["rope_theta"]
    scaling = None if wanted["rope_type"] == "default" else {k: v for k, v in wanted.items() if k != "rope_theta"}
    keys: dict[str, Any] = {"rope_theta": theta, "rope_scaling": scaling}
    return [keys | ({"rope_parameters": None} if layer.get("rope_parameters") else {})]


def rope_of(config: Config) -> dict[str, Any] | None:
    """Base, type and numbers of the rotations in a config, in one form; None where each kind of layer has its own."""
    found: dict[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        part = config.get(key)
        if isinstance(part, Mapping):
            if any(isinstance(value, Mapping) for value in part.values()):
                return None
            found |= part
    theta = config.get("rope_theta") or found.get("rope_theta") or _USUAL_THETA
    kind = found.get("rope_type") or found.get("type") or "default"
    numbers = {k: v for k, v in found.items() if k not in ("rope_type", "type", "rope_theta") and v is not None}
    return {"rope_theta": float(theta), "rope_type": kind} | ({} if kind == "default" else numbers)
