"""Heads that were published in one layout, written again in another: the same tensors under other names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from specctl.runtime import Target
from tests.runtime.eagle_heads import eagle
from tests.runtime.head_parts import SIZES, MadeHead, write
from tests.runtime.mtp_heads import mtp
from tests.runtime.other_heads import dflash


def renamed(made: MadeHead, names: Mapping[str, str], **keys: Any) -> MadeHead:
    """``made`` with other beginnings of its tensors' names; ``keys`` of its config are set, or dropped where None."""
    tensors = {}
    for name, value in load_file(made.folder / "model.safetensors").items():
        old = next((old for old in names if name.startswith(old)), "")
        tensors[names.get(old, "") + name.removeprefix(old)] = value
    config = json.loads((made.folder / "config.json").read_text()) | keys
    write(made.folder, {key: value for key, value in config.items() if value is not None}, tensors)
    return made


def _apart(made: MadeHead, kind: str, names: Mapping[str, str], **keys: Any) -> MadeHead:
    """In the layout of speculators: the keys of the layers stand apart."""
    config = json.loads((made.folder / "config.json").read_text())
    inner = {key: config[key] for key in (*SIZES, "model_type", "partial_rotary_factor") if key in config}
    gone = dict.fromkeys(config)
    return renamed(made, names, **gone | {"speculators_model_type": kind, "transformer_layer_config": inner} | keys)


def eagle_speculators(target: Target, folder: Path) -> MadeHead:
    names = {"fc.": "fusion_fc.", "layers.0.": "transformer."}
    return _apart(eagle(target, folder), "eagle", names, fusion_bias=True, layernorms=False)


def mtp_speculators(target: Target, folder: Path) -> MadeHead:
    names = {
        "mtp.fc.": "mtp_layers.0.input_proj.",
        "mtp.norm.": "mtp_layers.0.final_layernorm.",
        "mtp.pre_fc_norm_hidden.": "mtp_layers.0.hidden_layernorm.",
        "mtp.pre_fc_norm_embedding.": "mtp_layers.0.token_layernorm.",
        "mtp.layers.0.": "mtp_layers.0.",
    }
    return _apart(mtp(target, folder, "qwen3_next"), "mtp", names)


def dflash_speculators(target: Target, folder: Path) -> MadeHead:
    """Layers are counted as passed, not by the one whose output is meant."""
    made = dflash(target, folder, draft_vocab=77, taps=(1, 3))
    ids = {"aux_hidden_state_layer_ids": [1, 3], "mask_token_id": 256, "block_size": 5, "draft_vocab_size": 77}
    return _apart(made, "dflash", {}, **ids)


def dflash_without_ids(target: Target, folder: Path) -> MadeHead:
    """Taps what is usual for a target of three layers; the block's length stands among the draft's own keys."""
    own = {"mask_token_id": 256, "block_size": 5}
    return renamed(dflash(target, folder, taps=(2, 1)), {}, block_size=None, dflash_config=own)
