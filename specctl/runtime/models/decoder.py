"""The native decoder of the Llama, Qwen2, Qwen3 and Mistral family: few, fused calls a layer.

Differences inside the family are data, not branches: q/k norms (Qwen3), projection biases (Qwen2), sliding windows
(Mistral, some Qwen), tied heads, RoPE tables. Sources: the models' config.json and transformers' model code.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.kv_cache import KVCache, Span
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.stack import Stack


class Decoder:
    """A causal language model over a flat batch. ``embedding``, ``head``: [vocab, hidden]; ``norm``: [hidden]."""

    takes_trees = True

    def __init__(self, stack: Stack, embedding: Tensor, norm: Tensor, head: Tensor, max_positions: int) -> None:
        self.stack = stack
        self.embedding = embedding
        self.norm = norm
        self.head = head
        self.max_positions = max_positions

    @property
    def vocab_size(self) -> int:
        return self.embedding.shape[0]

    @property
    def num_layers(self) -> int:
        return len(self.stack.layers)

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    def make_cache(self, num_slots: int, max_len: int) -> KVCache:
        """An empty cache of ``num_slots`` sequences of up to ``max_len`` tokens."""
        return self.stack.make_cache(num_slots, max_len)

    @torch.inference_mode()
    def forward(self, token_ids: Sequence[int], spans: Sequence[Span], cache: KVCache, rows: Sequence[int]) -> Tensor:
        """Logits [len(rows), vocab] of the batch rows ``rows``; the keys and values of all rows enter the cache."""
        hidden = self._embed(token_ids)
        hidden = self.stack.run(hidden, self.stack.place(spans, cache))
        if len(rows) != len(token_ids):
            hidden = hidden.index_select(0, torch.tensor(rows, device=self.device))
        return self.stack.linear(self.stack.norm(hidden, self.norm), self.head)

    @torch.inference_mode()
    def forward_tapped(
        self,
        token_ids: Sequence[int],
        spans: Sequence[Span],
        cache: KVCache,
        rows: Sequence[int],
        layers: Sequence[int],
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, and the hidden states [T, len(layers) * hidden] of all rows, side by side in the order of
        ``layers`` (see `specctl.runtime.models.hidden`).
        """
        hidden = self._embed(token_ids)
        place = self.stack.place(spans, cache)
        kept = {0: hidden}
        for index in range(self.num_layers):
            hidden = self.stack.layer(index, hidden, place)
            if index + 1 in layers:
                kept[index + 1] = hidden
        final = kept[FINAL] = self.stack.norm(hidden, self.norm)
        if len(rows) != len(token_ids):
            final = final.index_select(0, torch.tensor(rows, device=self.device))
        return self.stack.linear(final, self.head), torch.cat([kept[layer] for layer in layers], dim=-1)

    def _embed(self, token_ids: Sequence[int]) -> Tensor:
        return F.embedding(torch.tensor(token_ids, device=self.device), self.embedding)
