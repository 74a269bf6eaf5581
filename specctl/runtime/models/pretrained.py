"""A network of transformers from a folder: whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from specctl.errors import DamagedError, SpecctlError
from specctl.runtime.models.families import ALIASES, REFUSED, TEXT_OF

# What transformers raises for a config or a folder that it cannot use.
REASONS = (
    ValueError, OSError, ImportError, KeyError, RuntimeError, TypeError, AttributeError, ArithmeticError, IndexError,
    StrictDataclassError,
)  # fmt: skip


# The smallest tower of images that transformers builds, for models of text that it has as a part alone; never run.
_NO_TOWER = {"width": 4, "layers": 1, "heads": 1, "image_size": 28, "patch_size": 14}
_TOWER = ("model.vision_model.", "model.multi_modal_projector.")


def read_raw(folder: Path) -> dict[str, Any]:
    """config.json as it stands; raises DamagedError where it is none of a model."""
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise DamagedError(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("model_type"), str):
        raise DamagedError(f"{path} names no model_type", help="is this the config.json of a language model?")
    return raw


def whole_config(folder: Path) -> Any:
    """The transformers config of ``folder``, image and audio parts included; raises SpecctlError or DamagedError."""
    # It warns of types under another's name, and prints a table of tensors; what matters is raised here.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    raw = read_raw(folder)
    kind = raw["model_type"]
    if kind in REFUSED:
        raise SpecctlError(
            f"{folder / 'config.json'}: model type {kind!r} does not run on the bundled runtime: {REFUSED[kind]}",
            help="run this target on an engine that has it; validate-config checks its settings all the same",
        )
    try:
        if kind in ALIASES:
            alias = ALIASES[kind]
            return CONFIG_MAPPING[alias].from_dict(raw | {"model_type": alias})
        if kind in TEXT_OF:
            text = {key: value for key, value in raw.items() if key != "model_type"}
            whole: Any = CONFIG_MAPPING[TEXT_OF[kind]]
            return whole(text_config=text, vision_config=_NO_TOWER)
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except REASONS as error:
        raise SpecctlError(f"transformers cannot read {folder / 'config.json'}: {error}") from error


def load_network(folder: Path, dtype: torch.dtype, device: torch.device, attention: str | None = None) -> Any:
    """The network of ``folder`` on ``device``; ``attention``: the name of its attention function, None is its own.

    Raises SpecctlError with transformers' own reason, and DamagedError for tensors that are absent: transformers would
    fill them with random numbers.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = whole_config(folder)
    auto: Any = (
        AutoModelForCausalLM if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else AutoModelForImageTextToText
    )
    how = {} if attention is None else {"attn_implementation": attention}
    try:
        model, found = auto.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **how,
        )
    except REASONS as error:
        raise SpecctlError(
            f"transformers cannot load {folder}: {error}", help="the runtime runs what transformers runs as a causal LM"
        ) from error
    if read_raw(folder)["model_type"] in TEXT_OF:
        found["missing_keys"] = {name for name in found["missing_keys"] if not name.startswith(_TOWER)}
    _check_whole(folder, found)
    return model.to(device)


def _check_whole(folder: Path, found: Mapping[str, Any]) -> None:
    """Raises DamagedError for tensors that are absent or of another shape than the config says."""
    help = "config.json and weights are of different models, or a file is missing; download both again"
    other = sorted(found["mismatched_keys"])
    if other:
        name, shape, wanted = other[0]
        raise DamagedError(
            f"{folder}: tensor {name!r} is {list(shape)}, config.json wants {list(wanted)}"
            f" ({len(other)} tensors are of another shape)",
            help=help,
        )
    absent = sorted(set(found["missing_keys"]))
    if absent:
        raise DamagedError(
            f"{folder}: {len(absent)} tensors that its config.json asks for are not among its weights: {absent[0]} …",
            help=help,
        )
