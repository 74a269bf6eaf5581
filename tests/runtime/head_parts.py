"""What made heads are made of: random tensors, and layers as straight-line code over all rows from the beginning, no
cache, nothing shared with the runtime.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from specctl.spec.methods import Method

WIDTH, INNER, HEADS, KV, DIM, THETA, EPS = 32, 40, 2, 1, 16, 5000.0, 1e-5
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": DIM,
    "num_hidden_layers": 1,
    "rms_norm_eps": EPS,
    "rope_theta": THETA,
    "max_position_embeddings": 32,
    "vocab_size": 258,
}

Tensors = dict[str, Tensor]
# Tokens so far and the target's states by layer, [n, width] each for all tokens but the newest; the next k tokens.
Reference = Callable[[list[int], Mapping[int, Tensor], int], list[int]]
# The same, and the tokens of a drafted path; scores [vocab] of what follows it.
Scores = Callable[[list[int], Mapping[int, Tensor], list[int]], Tensor]


@dataclass(frozen=True)
class MadeHead:
    """A checkpoint's folder, the setting's method, the layers it taps, its reference, and what trees are made from."""

    folder: Path
    method: Method
    taps: tuple[int, ...]
    reference: Reference
    scores: Scores | None = None


def noise(*shape: int, scale: float = 0.4) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64) * scale


def weight_norm(size: int = WIDTH) -> Tensor:
    return torch.rand(size, dtype=torch.float64) * 0.8 + 0.6


def layer(
    prefix: str, entering: int = WIDTH, *, bias: bool = False, qk_norm: bool = False, gated: bool = False
) -> Tensors:
    q = HEADS * DIM
    made = {
        "self_attn.q_proj.weight": noise(2 * q if gated else q, entering),
        "self_attn.k_proj.weight": noise(KV * DIM, entering),
        "self_attn.v_proj.weight": noise(KV * DIM, entering),
        "self_attn.o_proj.weight": noise(WIDTH, q),
        "mlp.gate_proj.weight": noise(INNER, WIDTH),
        "mlp.up_proj.weight": noise(INNER, WIDTH),
        "mlp.down_proj.weight": noise(WIDTH, INNER),
        "post_attention_layernorm.weight": weight_norm(),
    }
    if bias:
        made |= {f"self_attn.{n}_proj.bias": noise(s * DIM) for n, s in (("q", HEADS), ("k", KV), ("v", KV))}
    if qk_norm:
        made |= {f"self_attn.{n}_norm.weight": weight_norm(DIM) for n in "qk"}
    return {prefix + name: value for name, value in made.items()}


def rms(x: Tensor, weight: Tensor | None, eps: float = EPS) -> Tensor:
    x = x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return x if weight is None else x * weight


def rotate(x: Tensor, turning: int) -> Tensor:
    """``x`` [T, heads, dim] by its row number, the first ``turning`` dims; angles in float32, as models are trained."""
    steps = torch.arange(0, turning, 2, dtype=torch.float32) / turning
    angles = torch.outer(torch.arange(len(x), dtype=torch.float32), 1.0 / THETA**steps)
    cos, sin = angles.cos().double()[:, None], angles.sin().double()[:, None]
    a, b = x[..., : turning // 2], x[..., turning // 2 : turning]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., turning:]], dim=-1)


def attention(
    t: Tensors, prefix: str, x: Tensor, *, gated: bool = False, turning: int = DIM, offset: float = 0
) -> Tensor:
    """Plain causal attention over all rows of ``x``, output projection included."""

    def project(name: str) -> Tensor:
        bias = t.get(f"{prefix}self_attn.{name}_proj.bias")
        return F.linear(x, t[f"{prefix}self_attn.{name}_proj.weight"], bias)

    q, gate = project("q").view(len(x), HEADS, -1), None
    if gated:
        q, gate = q[..., :DIM], q[..., DIM:]
    k, v = project("k").view(len(x), KV, DIM), project("v").view(len(x), KV, DIM)
    if f"{prefix}self_attn.q_norm.weight" in t:
        q = rms(q, t[f"{prefix}self_attn.q_norm.weight"] + offset)
        k = rms(k, t[f"{prefix}self_attn.k_norm.weight"] + offset)
    q, k = rotate(q, turning), rotate(k, turning)
    mixed = []
    for head in range(HEADS):
        scores = q[:, head] @ k[:, head * KV // HEADS].T / math.sqrt(DIM)
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        mixed.append(scores.softmax(-1) @ v[:, head * KV // HEADS])
    out = torch.stack(mixed, dim=1)
    if gate is not None:
        out = out * gate.sigmoid()
    return F.linear(out.reshape(len(x), -1), t[f"{prefix}self_attn.o_proj.weight"])


def mlp(t: Tensors, prefix: str, x: Tensor, offset: float = 0) -> Tensor:
    entering = rms(x, t[f"{prefix}post_attention_layernorm.weight"] + offset)
    gate = F.silu(entering @ t[f"{prefix}mlp.gate_proj.weight"].T)
    return x + (gate * (entering @ t[f"{prefix}mlp.up_proj.weight"].T)) @ t[f"{prefix}mlp.down_proj.weight"].T


class Chained:
    """The reference of a recurrent head; ``forward(states, tokens)`` answers scores and next state of the last row."""

    def __init__(
        self, forward: Callable[[Tensor, list[int]], tuple[Tensor, Tensor]], enter: Callable[..., Tensor]
    ) -> None:
        self._forward = forward
        self._enter = enter

    def __call__(self, tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        states, following = self._enter(hidden), list(tokens[1:])
        for _ in range(k):
            scores, fed = self._forward(states, following)
            following.append(int(scores.argmax()))
            states = torch.cat([states, fed[None]])
        return following[len(tokens) - 1 :]

    def scores(self, tokens: list[int], hidden: Mapping[int, Tensor], path: list[int]) -> Tensor:
        """What follows a drafted ``path``."""
        states, following = self._enter(hidden), list(tokens[1:])
        for token in path:
            states = torch.cat([states, self._forward(states, following)[1][None]])
            following.append(token)
        return self._forward(states, following)[0]


def write(folder: Path, config: dict[str, Any], tensors: Tensors, pickled: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    stored = {name: value.contiguous() for name, value in tensors.items()}
    if pickled:
        torch.save(stored, folder / pickled)
    else:
        save_file(stored, folder / "model.safetensors")
