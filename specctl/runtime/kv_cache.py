"""Keys and values of all sequences, one slot each, and what a step needs to read and write them.

A slot is a row of ``max_len`` entries that one sequence owns while it runs. Truncating costs nothing: whatever stands
beyond the positions that a step attends to is never read, and is overwritten by the next token at that position.

    slot 0  | x0 x1 x2 x3 x4 d1 d2 .. |     num_computed = 5, two rejected drafts lie behind it
    slot 1  | x0 x1 x2 ..             |
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Span:
    """``count`` new tokens of the sequence in ``slot``, at positions ``start`` to ``start + count - 1``."""

    slot: int
    start: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.count


class KVCache:
    """``kv[layer]``: [slots * max_len, 2 * kv_heads, head_dim], the keys first, then the values."""

    def __init__(
        self,
        num_layers: int,
        num_slots: int,
        max_len: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.num_slots = num_slots
        self.max_len = max_len
        self.kv_heads = kv_heads
        # Zeros, not empty: a masked value is multiplied by 0, and 0 * NaN would be NaN. On CPU the pages cost nothing
        # until they are written.
        shape = (num_slots * max_len, 2 * kv_heads, head_dim)
        self.kv = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(num_layers)]

    def keys_values(self, layer: int, slots: slice, length: int) -> tuple[Tensor, Tensor]:
        """Views [slots, kv_heads, length, head_dim] of the first ``length`` entries."""
        kv = self.kv[layer].view(self.num_slots, self.max_len, 2 * self.kv_heads, -1)[slots, :length].transpose(1, 2)
        return kv[:, : self.kv_heads], kv[:, self.kv_heads :]
