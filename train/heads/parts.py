"""Layers of heads in training: rows that follow the text, and rows that guess ahead of it.

A guess hangs on an anchor, a place of the text: it sees the text up to there and the guesses of the same anchor before
it. So one forward serves the guesses of all anchors, whatever the head does with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Sizes:
    """The sizes of a head's layers."""

    width: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float = 1e-6
    theta: float = 10_000.0


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear layer in bfloat16 over float32 weights; the result is float32."""
    kind = torch.bfloat16
    return F.linear(x.to(kind), weight.to(kind), None if bias is None else bias.to(kind)).float()


def rms(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Root-mean-square norm of the last dimension."""
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@dataclass(frozen=True)
class Seen:
    """Keys and values [rows, kv_heads, T, dim] of the text, and which of them each anchor sees: [rows, A, T]."""

    keys: Tensor
    values: Tensor
    visible: Tensor


@dataclass(frozen=True)
class Own:
    """Keys and values [rows, kv_heads, A, S, dim] of the anchors' own guesses; `visible` [R, S]."""

    keys: Tensor
    values: Tensor
    visible: Tensor


class Attention(nn.Module):
    """Grouped-query attention; `entering`: width of what it reads."""

    def __init__(self, sizes: Sizes, entering: int, qk_norm: bool, bias: bool) -> None:
        super().__init__()
        self.sizes = sizes
        query, pairs = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
        self.q_proj = nn.Linear(entering, query, bias=bias)
        self.k_proj = nn.Linear(entering, pairs, bias=bias)
        self.v_proj = nn.Linear(entering, pairs, bias=bias)
        self.o_proj = nn.Linear(query, sizes.width, bias=False)
        self.q_norm = nn.RMSNorm(sizes.head_dim, sizes.eps) if qk_norm else None
        self.k_norm = nn.RMSNorm(sizes.head_dim, sizes.eps) if qk_norm else None

    def queries(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turned queries [rows, kv_heads, groups, …, dim] of `x` [rows, …, in] at `positions` […]."""
        q = self._turned(x, self.q_proj, self.q_norm, positions)
        return q.unflatten(1, (self.sizes.kv_heads, -1))

    def keys(self, x: Tensor, positions: Tensor) -> Tensor:
        """Turned keys [rows, kv_heads, …, dim]."""
        return self._turned(x, self.k_proj, self.k_norm, positions)

    def values(self, x: Tensor) -> Tensor:
        """Values [rows, kv_heads, …, dim]."""
        return self._split(product(x, self.v_proj.weight, self.v_proj.bias))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.sizes.head_dim)).movedim(-2, 1)

    def _turned(self, x: Tensor, projection: nn.Linear, norm: nn.RMSNorm | None, positions: Tensor) -> Tensor:
        heads = self._split(product(x, projection.weight, projection.bias))
        heads = heads if norm is None else rms(heads, norm.weight, self.sizes.eps)
        half = self.sizes.head_dim // 2
        rates = self.sizes.theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = positions.float().unsqueeze(-1) * rates
        cos, sin = angles.cos(), angles.sin()
        left, right = heads.chunk(2, dim=-1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)

    def attend(self, q: Tensor, seen: Seen, own: Own | None = None) -> Tensor:
        """What `q` [rows, kv_heads, groups, A, R, dim] reads: [rows, A, R, width]."""
        rows, kv, groups, anchors, count, dim = q.shape
        kind = torch.bfloat16
        q = (q * dim**-0.5).to(kind)
        text = torch.matmul(q.reshape(rows, kv, -1, dim), seen.keys.to(kind).transpose(-1, -2))
        text = text.view(rows, kv, groups, anchors, count, -1).float()
        scores = text.masked_fill(~seen.visible[:, None, None, :, None, :], float("-inf"))
        if own is not None:
            near = _along(q, own.keys.to(kind).unsqueeze(2))
            scores = torch.cat((scores, near.masked_fill(~own.visible, float("-inf"))), dim=-1)
        share = scores.softmax(dim=-1).to(kind)
        length = seen.keys.shape[2]
        mixed = torch.matmul(share[..., :length].reshape(rows, kv, -1, length), seen.values.to(kind))
        mixed = mixed.view(rows, kv, groups, anchors, count, dim).float()
        if own is not None:
            mixed = mixed + _mixed(share[..., length:], own.values.to(kind).unsqueeze(2))
        flat = mixed.flatten(1, 2).permute(0, 2, 3, 1, 4).flatten(-2)
        return product(flat, self.o_proj.weight)


def _along(q: Tensor, keys: Tensor) -> Tensor:
    """Products [..., R, S] of `q` [..., R, dim] and `keys` [..., S, dim]; of one row without many calls."""
    return (q * keys).sum(-1).unsqueeze(-2).float() if q.shape[-2] == 1 else (q @ keys.transpose(-1, -2)).float()


def _mixed(share: Tensor, values: Tensor) -> Tensor:
    """`values` [..., S, dim] weighed by `share` [..., R, S]: [..., R, dim]."""
    if share.shape[-2] > 1:
        return torch.matmul(share, values).float()
    return (share.transpose(-1, -2) * values).sum(-2, keepdim=True).float()


class Gated(nn.Module):
    """SwiGLU."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.up_proj = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.down_proj = nn.Linear(sizes.inner, sizes.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Rows [..., width]."""
        return product(
            F.silu(product(x, self.gate_proj.weight)) * product(x, self.up_proj.weight), self.down_proj.weight
        )


class Layer(nn.Module):
    """One decoder layer; `input_norm` False: its input is normalised elsewhere or not at all."""

    def __init__(
        self,
        sizes: Sizes,
        *,
        entering: int | None = None,
        input_norm: bool = True,
        qk_norm: bool = False,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.self_attn = Attention(sizes, entering or sizes.width, qk_norm, bias)
        self.mlp = Gated(sizes)
        self.input_layernorm = nn.RMSNorm(sizes.width, sizes.eps) if input_norm else None
        self.post_attention_layernorm = nn.RMSNorm(sizes.width, sizes.eps)
        start(self)

    def enter(self, stream: Tensor) -> Tensor:
        """What attention reads of the stream."""
        return stream if self.input_layernorm is None else rms(stream, self.input_layernorm.weight, self.sizes.eps)

    def leave(self, stream: Tensor, mixed: Tensor) -> Tensor:
        """The stream after attention has added `mixed`, and after the MLP."""
        stream = stream + mixed
        normed = rms(stream, self.post_attention_layernorm.weight, self.sizes.eps)
        out: Tensor = stream + self.mlp(normed)
        return out

    def text(self, entered: Tensor, real: Tensor, asking: slice = slice(None)) -> tuple[Tensor, Seen]:
        """Causal attention of rows that follow the text, `entered` [rows, T, in] (`real` [rows, T]: no padding): what
        the rows `asking` read [rows, n, width], and what may be seen of all rows.
        """
        positions = torch.arange(entered.shape[1])
        attention = self.self_attn
        seen = Seen(attention.keys(entered, positions), attention.values(entered), past(real)[:, asking])
        queries = attention.queries(entered[:, asking], positions[asking])
        return attention.attend(queries.unsqueeze(-2), seen).squeeze(2), seen


def past(real: Tensor) -> Tensor:
    """Which rows [rows, T, T] each row sees: itself and the text before it; `real` [rows, T]: no padding."""
    length = real.shape[1]
    seen = torch.ones(length, length, dtype=torch.bool).tril() & real.unsqueeze(1)
    # A padded row would see nothing at all; let it see itself.
    return seen | torch.eye(length, dtype=torch.bool)


def start(module: nn.Module) -> None:
    """Small random matrices, smaller where they write into the stream."""
    for name, weight in module.named_parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=0.02 if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.04)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
