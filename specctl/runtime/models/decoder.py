"""The native decoder of the Llama, Qwen2, Qwen3 and Mistral family: few, fused calls a layer.

Differences inside the family are data, not branches: q/k norms (Qwen3), projection biases (Qwen2), sliding windows
(Mistral, some Qwen), tied heads, RoPE tables. Sources: the models' config.json and transformers' model code.
"""

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
class DecoderShape:
    """Sizes of a decoder; ``windows[layer]`` is its sliding window in tokens, None for full attention."""

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_positions: int
    norm_eps: float
    windows: tuple[int | None, ...]


@dataclass
class LayerWeights:
    """Weights of one layer; ``qkv`` [(heads + 2 kv_heads) * dim, hidden] and ``gate_up`` [2 * inner, hidden] are fused.

    ``qk_norm`` [heads + kv_heads, dim], None without q/k norms.
    """

    attention_norm: Tensor
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

    def products(self) -> tuple[Tensor, ...]:
        """The weights of the layer's matrix products."""
        return self.qkv, self.output, self.gate_up, self.down


class Decoder:
    """A causal language model over a flat batch. ``cos`` and ``sin``: [max_positions, head_dim]."""

    def __init__(
        self,
        shape: DecoderShape,
        embedding: Tensor,
        layers: list[LayerWeights],
        norm: Tensor,
        head: Tensor,
        cos: Tensor,
        sin: Tensor,
    ) -> None:
        self.shape = shape
        self.embedding = embedding
        self.layers = layers
        self.norm = norm
        self.head = head
        self._linear = Linear([head, *(w for layer in layers for w in layer.products())])
        self.cos = cos
        # rotate_half(x) is x rolled by half its width with the sign of the first half flipped; the table takes the
        # sign.
        half = shape.head_dim // 2
        self.sin = torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)

    @property
    def vocab_size(self) -> int:
        return self.shape.vocab_size

    @property
    def max_positions(self) -> int:
        return self.shape.max_positions

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    def make_cache(self, num_slots: int, max_len: int) -> KVCache:
        """An empty cache of ``num_slots`` sequences of up to ``max_len`` tokens."""
        shape = self.shape
        return KVCache(
            shape.num_layers, num_slots, max_len, shape.num_kv_heads, shape.head_dim, self.dtype, self.device
        )

    @torch.inference_mode()
    def forward(self, token_ids: Sequence[int], spans: Sequence[Span], cache: KVCache, rows: Sequence[int]) -> Tensor:
        """Logits [len(rows), vocab] of the batch rows ``rows``; the keys and values of all rows enter the cache."""
        plan = make_plan(spans, cache, self.device)
        cos = self.cos.index_select(0, plan.positions).unsqueeze(1)
        sin = self.sin.index_select(0, plan.positions).unsqueeze(1)
        hidden = F.embedding(torch.tensor(token_ids, device=self.device), self.embedding)
        for index, layer in enumerate(self.layers):
            hidden = self._attention(index, layer, hidden, cos, sin, cache, plan)
            hidden = self._mlp(layer, hidden)
        if len(rows) != len(token_ids):
            hidden = hidden.index_select(0, torch.tensor(rows, device=self.device))
        return self._linear(self._norm(hidden, self.norm), self.head)

    def _norm(self, rows: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(rows, (rows.shape[-1],), weight, self.shape.norm_eps)

    def _attention(
        self, index: int, layer: LayerWeights, hidden: Tensor, cos: Tensor, sin: Tensor, cache: KVCache, plan: Plan
    ) -> Tensor:
        shape = self.shape
        fused = self._linear(self._norm(hidden, layer.attention_norm), layer.qkv, layer.qkv_bias)
        heads = fused.view(-1, shape.num_heads + 2 * shape.num_kv_heads, shape.head_dim)
        turning = heads[:, : -shape.num_kv_heads]
        if layer.qk_norm is not None:
            turning.copy_(F.rms_norm(turning, (shape.head_dim,), None, shape.norm_eps) * layer.qk_norm)
        rolled = turning.roll(shape.head_dim // 2, -1)
        turning.mul_(cos).addcmul_(rolled, sin)
        cache.kv[index].index_copy_(0, plan.write, heads[:, shape.num_heads :])
        mixed = attend(heads[:, : shape.num_heads], index, cache, plan, shape.windows[index])
        return hidden + self._linear(mixed, layer.output, layer.output_bias)

    def _mlp(self, layer: LayerWeights, hidden: Tensor) -> Tensor:
        fused = self._linear(self._norm(hidden, layer.mlp_norm), layer.gate_up, layer.gate_up_bias)
        gate, up = fused.chunk(2, dim=-1)
        return hidden + self._linear(F.silu(gate) * up, layer.down, layer.down_bias)
