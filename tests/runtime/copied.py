"""A target and an EAGLE-1 head that copies it: what the head drafts is always right, as long as every row of its cache
is the true one.

The target has one layer, which hangs on the whole text. The head has the same layer and reads the embedding alone; it
never sees the first token, so that token, `START`, has nothing to say: its key is out of reach of every query.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from tests.runtime.head_parts import write
from tests.runtime.kit import SIZES, VOCAB, save

START = VOCAB - 1
_WIDTH, _DIM, _EPS, _FAR = 32, 8, 1e-6, 200.0


def copied(folder: Path) -> tuple[Path, Path]:
    """The folders of a target and of the head that copies it."""
    torch.manual_seed(11)
    rotation = {"rope_type": "default", "rope_theta": 1e6}  # the last pair of a head hardly turns
    sizes = SIZES | {"num_hidden_layers": 1, "rms_norm_eps": _EPS, "rope_parameters": rotation}
    target = save(Qwen2ForCausalLM(Qwen2Config(**sizes)), folder / "target")
    stored = load_file(target / "model.safetensors")
    stored |= {name: torch.ones_like(value) for name, value in stored.items() if "norm" in name}
    stored["model.embed_tokens.weight"] = _embedding()
    stored["lm_head.weight"] = torch.randn(VOCAB, _WIDTH)  # a decided head: the best token stands far above the next
    stored |= _attention(stored)
    save_file(stored, target / "model.safetensors", {"format": "pt"})
    prefix = "model.layers.0."
    tensors = {n.replace(prefix, "layers.0."): v for n, v in stored.items() if n.startswith(prefix)}
    del tensors["layers.0.input_layernorm.weight"]
    tensors["fc.weight"] = torch.cat([torch.eye(_WIDTH), torch.zeros(_WIDTH, _WIDTH)], dim=-1)
    write(folder / "head", sizes | {"bias": False}, tensors)
    return target, folder / "head"


def _embedding() -> Tensor:
    """Rows that an RMS norm leaves as they are; the last place is that of `START` alone."""
    rows = torch.randn(VOCAB, _WIDTH)
    rows[:, -1] = 0
    rows[START] = F.one_hot(torch.tensor(_WIDTH - 1), _WIDTH).float()
    return rows / rows.norm(dim=-1, keepdim=True) * (_WIDTH * (1 - _EPS)) ** 0.5


def _attention(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Queries that all ask for the last pair of a head's places, and keys that refuse it for `START`."""
    name = "model.layers.0.self_attn.{}_proj.{}"
    pair = [place for place in range(_WIDTH) if place % _DIM in (_DIM // 2 - 1, _DIM - 1)]
    asks, answers = stored[name.format("q", "bias")].clone(), stored[name.format("k", "weight")].clone()
    asks[pair] = _FAR
    answers[[place for place in pair if place < len(answers)]] = 0
    answers[[place for place in pair if place < len(answers)], -1] = -_FAR
    return {name.format("q", "bias"): asks, name.format("k", "weight"): answers}
