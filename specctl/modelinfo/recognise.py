"""What kind of draft a folder holds, told by its content: names of folders and of classes say too little (a head of
EAGLE-3 may call itself an ordinary Llama). The order of the tests matters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_SPECULATORS = {"peagle": "eagle3", "dflash2": "dspark"}
_EAGLE3_KEYS = ("draft_vocab_size", "truncated_vocab_size")
GEMMA_ASSISTANTS = ("gemma4_assistant", "gemma4_unified_assistant")
_MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")


def recognise(config: Mapping[str, Any], names: Collection[str]) -> str | None:
    """The canonical method that a checkpoint with this config.json and these tensor names is for; None where it could
    be an ordinary model.
    """
    kind = config.get("speculators_model_type")
    if isinstance(kind, str):
        return _SPECULATORS.get(kind, kind)
    if config.get("model_type") == "mlp_speculator" or {"n_predict", "inner_dim"} <= config.keys():
        return "mlp_speculator"
    if config.get("model_type") in GEMMA_ASSISTANTS:
        return "mtp"
    architecture = " ".join(map(str, config.get("architectures") or ()))
    if "dflash_config" in config or "DFlash" in architecture:
        return "dflash"
    if "pard_token" in config or "ptd_token_id" in config:
        return "pard"
    if _is_medusa(config, names):
        return "medusa"
    return _eagle(config, names, architecture) or _mtp(config)


def _is_medusa(config: Mapping[str, Any], names: Collection[str]) -> bool:
    stated = "medusa_num_heads" in config or "medusa_num_layers" in config
    return stated or any(name.startswith(("medusa_head.", "medusa_heads.", "blocks.0.layers.")) for name in names)


def _eagle(config: Mapping[str, Any], names: Collection[str], architecture: str) -> str | None:
    # A norm of its own for the state inside the first layer: the layers may be numbered like any model's.
    if any(name.startswith("midlayer.") for name in names) or {"d2t", "t2d", "layers.0.hidden_norm.weight"} & {*names}:
        return "eagle3"
    if any(key in config for key in _EAGLE3_KEYS) or "Eagle3" in architecture:
        return "eagle3"
    if "fc.weight" in names and "layers.0.input_layernorm.weight" not in names:
        return "eagle"
    return None


def _mtp(config: Mapping[str, Any]) -> str | None:
    nested = config.get("text_config")
    places = (config, nested if isinstance(nested, Mapping) else {})
    return "mtp" if any(place.get(key) for place in places for key in _MTP_KEYS) else None
