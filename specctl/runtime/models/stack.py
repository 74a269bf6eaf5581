"""Transformer layers over a flat batch with a KV cache: what the decoder and the draft heads have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.kv_cache import KVCache, Span
from specctl.runtime.models.attention import Plan, attend, make_plan
from specctl.runtime.models.linear import Linear


@dataclass(frozen=True)
class StackShape:
    """Sizes of a stack's layers; ``windows[layer]`` is its sliding window in tokens, None for full attention."""

    hidden_size: int
    inner_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    windows: tuple[int | None, ...]


@dataclass
class LayerWeights:
    """Weights of one layer; ``qkv`` [(heads + 2 kv_heads) * dim, in] and ``gate_up`` [2 * inner, hidden] are fused.

    ``attention_norm`` None: the layer's input is normalised elsewhere, or not at all. ``qk_norm`` [heads + kv_heads,
    dim], None without q/k norms. ``output_gate`` [heads * dim, in]: a sigmoid of it scales the attention's output.
    """

    attention_norm: Tensor | None
    qkv: Tensor
    qkv_bias: Tensor | None
    qk_norm: Tensor | None
    output: Tensor
    output_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None
    output_gate: Tensor | None = None

    def products(self) -> tuple[Tensor, ...]:
        """The weights of the layer's matrix products."""
        gate = () if self.output_gate is None else (self.output_gate,)
        return self.qkv, self.output, self.gate_up, self.down, *gate


@dataclass(frozen=True)
class Place:
    """Where the rows of one forward stand: their cache entries and the rotations of their positions."""

    cache: KVCache
    plan: Plan
    cos: Tensor
    sin: Tensor


class Stack:
    """``cos`` and ``sin``: [positions, dims that turn]; dims of a head beyond those are left alone."""

    def __init__(self, shape: StackShape, layers: list[LayerWeights], cos: Tensor, sin: Tensor, linear: Linear) -> None:
        self.shape = shape
        self.layers = layers
        self.linear = linear
        self._cos = cos
        # rotate_half(x) is x rolled by half its width with the sign of the first half flipped; the table takes the
        # sign.
        self._half = cos.shape[-1] // 2
        self._sin = torch.cat([-sin[:, : self._half], sin[:, self._half :]], dim=-1)

    @property
    def positions(self) -> int:
        """Positions that the tables reach."""
        return self._cos.shape[0]

    @property
    def device(self) -> torch.device:
        return self._cos.device

    def make_cache(self, num_slots: int, max_len: int) -> KVCache:
        """An empty cache of ``num_slots`` sequences of up to ``max_len`` tokens."""
        shape = self.shape
        return KVCache(
            len(self.layers), num_slots, max_len, shape.num_kv_heads, shape.head_dim, self._cos.dtype, self.device
        )

    def place(self, spans: Sequence[Span], cache: KVCache, causal: bool = True) -> Place:
        """The place of the rows of ``spans``; not ``causal``: each row sees its whole span."""
        plan = make_plan(spans, cache, self.device, causal)
        cos = self._cos.index_select(0, plan.positions).unsqueeze(1)
        sin = self._sin.index_select(0, plan.positions).unsqueeze(1)
        return Place(cache, plan, cos, sin)

    def run(self, hidden: Tensor, place: Place) -> Tensor:
        """``hidden`` [T, width] through all layers."""
        for index in range(len(self.layers)):
            hidden = self.layer(index, hidden, place)
        return hidden

    def layer(self, index: int, hidden: Tensor, place: Place) -> Tensor:
        """One ordinary layer: attention and MLP, each behind its norm and added to the stream."""
        norm = self.layers[index].attention_norm
        entering = hidden if norm is None else self.norm(hidden, norm)
        return self.mlp(index, hidden + self.attention(index, entering, place))

    def norm(self, rows: Tensor, weight: Tensor) -> Tensor:
        """RMS norm of each row."""
        return F.rms_norm(rows, (rows.shape[-1],), weight, self.shape.norm_eps)

    def attention(self, index: int, rows: Tensor, place: Place) -> Tensor:
        """What the attention of layer ``index`` adds to the stream for ``rows`` [T, in], already normalised."""
        shape, layer = self.shape, self.layers[index]
        fused = self.linear(rows, layer.qkv, layer.qkv_bias)
        heads = fused.view(-1, shape.num_heads + 2 * shape.num_kv_heads, shape.head_dim)
        turning = heads[:, : -shape.num_kv_heads]
        if layer.qk_norm is not None:
            turning.copy_(F.rms_norm(turning, (shape.head_dim,), None, shape.norm_eps) * layer.qk_norm)
        self._turn(turning, place)
        place.cache.kv[index].index_copy_(0, place.plan.write, heads[:, shape.num_heads :])
        mixed = attend(heads[:, : shape.num_heads], index, place.cache, place.plan, shape.windows[index])
        if layer.output_gate is not None:
            mixed = mixed * self.linear(rows, layer.output_gate).sigmoid()
        return self.linear(mixed, layer.output, layer.output_bias)

    def _turn(self, heads: Tensor, place: Place) -> None:
        """Rotate ``heads`` [T, heads, dim] in place."""
        turning = heads if heads.shape[-1] == 2 * self._half else heads[..., : 2 * self._half]
        rolled = turning.roll(self._half, -1)
        turning.mul_(place.cos).addcmul_(rolled, place.sin)

    def keep(self, index: int, rows: Tensor, place: Place) -> None:
        """Write keys and values of ``rows`` [T, in] into the cache of layer ``index`` and do nothing else."""
        shape, layer = self.shape, self.layers[index]
        first = shape.num_heads * shape.head_dim
        bias = None if layer.qkv_bias is None else layer.qkv_bias[first:]
        pairs = F.linear(rows, layer.qkv[first:], bias).view(-1, 2 * shape.num_kv_heads, shape.head_dim)
        keys = pairs[:, : shape.num_kv_heads]
        if layer.qk_norm is not None:
            keys.copy_(F.rms_norm(keys, (shape.head_dim,), None, shape.norm_eps) * layer.qk_norm[shape.num_heads :])
        self._turn(keys, place)
        place.cache.kv[index].index_copy_(0, place.plan.write, pairs)

    def mlp(self, index: int, hidden: Tensor) -> Tensor:
        """The stream after the MLP of layer ``index``."""
        layer = self.layers[index]
        fused = self.linear(self.norm(hidden, layer.mlp_norm), layer.gate_up, layer.gate_up_bias)
        gate, up = fused.chunk(2, dim=-1)
        return hidden + self.linear(F.silu(gate) * up, layer.down, layer.down_bias)
