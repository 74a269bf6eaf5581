"""A lean training forward of the Qwen3 mathematics; parameters carry the names that transformers gives them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPSILON = 1e-6


@dataclass(frozen=True)
class Shape:
    """The sizes of a model."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    head_dim: int = 32
    theta: float = 10_000.0
    max_positions: int = 1024

    def config(self, eos: int, pad: int) -> dict[str, Any]:
        """The config.json that transformers and specctl load."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": self.vocabulary,
            "hidden_size": self.width,
            "intermediate_size": self.inner, "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim, "hidden_act": "silu",
            "max_position_embeddings": self.max_positions, "rms_norm_eps": EPSILON, "rope_theta": self.theta,
            "rope_scaling": None,
            "attention_bias": False, "attention_dropout": 0.0, "use_sliding_window": False, "sliding_window": None,
            "tie_word_embeddings": True, "initializer_range": 0.02, "use_cache": True, "torch_dtype": "float16",
            "bos_token_id": None, "eos_token_id": eos, "pad_token_id": pad,
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """For checkpoints."""
        return asdict(self)


def rope_tables(length: int, shape: Shape, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position, each length × head_dim."""
    half = shape.head_dim // 2
    rates = shape.theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * rates
    angles = torch.cat((angles, angles), dim=-1).to(device)
    return angles.cos(), angles.sin()


def rms(x: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square norm, in float32 inside."""
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)
    return (scaled * weight).to(x.dtype)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Attention(nn.Module):
    """Grouped-query attention with norms on query and key."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.width, wide, bias=False)
        self.k_proj = nn.Linear(shape.width, narrow, bias=False)
        self.v_proj = nn.Linear(shape.width, narrow, bias=False)
        self.o_proj = nn.Linear(wide, shape.width, bias=False)
        self.q_norm = nn.RMSNorm(shape.head_dim, EPSILON)
        self.k_norm = nn.RMSNorm(shape.head_dim, EPSILON)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """Causal attention; rows are padded on the right, so that the causal mask is enough."""
        s, (rows, length, _) = self.shape, x.shape
        weights = torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight)).to(x.dtype)
        mixed = F.linear(x, weights).view(rows, length, s.heads + 2 * s.kv_heads, s.head_dim).transpose(1, 2)
        q, k, v = torch.split(mixed, [s.heads, s.kv_heads, s.kv_heads], dim=1)
        q = _turn(rms(q, self.q_norm.weight), cos, sin)
        k = _turn(rms(k, self.k_norm.weight), cos, sin)
        # Query heads that share a key are stacked as rows: one large product instead of repeated keys.
        q = q.reshape(rows, s.kv_heads, -1, s.head_dim)
        scores = torch.matmul(q, k.transpose(-1, -2)).view(rows, s.kv_heads, -1, length, length)
        share = torch.softmax(scores.float() * s.head_dim**-0.5 + mask, dim=-1).to(x.dtype)
        out = torch.matmul(share.view(rows, s.kv_heads, -1, length), v)
        out = out.view(rows, s.heads, length, s.head_dim).transpose(1, 2).reshape(rows, length, -1)
        return F.linear(out, self.o_proj.weight.to(x.dtype))


class Gated(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """One fused product up, one down."""
        weights = torch.cat((self.gate_proj.weight, self.up_proj.weight)).to(x.dtype)
        gate, up = F.linear(x, weights).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, self.down_proj.weight.to(x.dtype))


class Block(nn.Module):
    """One layer: attention and gated network, each after a norm and added to the stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.width, EPSILON)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.width, EPSILON)
        self.mlp = Gated(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, kind: torch.dtype) -> Tensor:
        """The stream stays in float32, the products run in `kind`."""
        x = x + self.self_attn(rms(x, self.input_layernorm.weight).to(kind), cos, sin, mask)
        out: Tensor = x + self.mlp(rms(x, self.post_attention_layernorm.weight).to(kind))
        return out


class Body(nn.Module):
    """Embedding, layers, last norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, EPSILON)


class TinyQwen3(nn.Module):
    """The model as it is trained; its state dict loads into Qwen3ForCausalLM."""

    def __init__(self, shape: Shape, kind: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.shape, self.kind = shape, kind
        self.model = Body(shape)

    def blocks(self) -> Iterator[Block]:
        """The layers, typed."""
        for layer in self.model.layers:
            assert isinstance(layer, Block)
            yield layer

    def hidden(self, ids: Tensor) -> Tensor:
        """The normed last states of right-padded rows."""
        length = ids.shape[1]
        cos, sin = (t.to(self.kind) for t in rope_tables(length, self.shape, ids.device))
        mask = torch.full((length, length), float("-inf"), device=ids.device).triu(1)
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin, mask, self.kind)
        return rms(x, self.model.norm.weight)

    def logits(self, states: Tensor) -> Tensor:
        """Scores of the next token, through the tied embedding."""
        return F.linear(states.to(self.kind), self.model.embed_tokens.weight.to(self.kind)).float()

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of all positions."""
        return self.logits(self.hidden(ids))
