"""Keys and values of all sequences, one slot each, and what a step needs to read and write them.

A slot is a row of ``max_len`` entries that one sequence owns while it runs. Truncating costs nothing: whatever stands
beyond the positions that a step attends to is never read, and is overwritten by the next token at that position.

    slot 0  | x0 x1 x2 x3 x4 d1 d2 .. |     num_computed = 5, two rejected drafts lie behind it
    slot 1  | x0 x1 x2 ..             |
    slot 2  | x0 x1 x2 a b c d ..     |     a tree behind x2: d follows a, b and c do not stand between them

Of a tree only one path can stand; its entries are moved together (`KVCache.move`) before the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specctl.runtime.pages import give_back


@dataclass(frozen=True, eq=False)
class Branches:
    """Rows of a span that are nodes of a tree behind the first ``trunk`` entries of a slot, all of which they see.

    ``depths[i]``: row i stands at position ``trunk + depths[i]``. ``sees`` [count, entries from the trunk to the span's
    end]: which nodes each row sees, itself included; on the CPU.
    """

    trunk: int
    depths: tuple[int, ...]
    sees: Tensor

    def within(self, window: int | None) -> Tensor:
        """``sees`` without what lies ``window`` or more places back; None: without a window."""
        if window is None:
            return self.sees
        # Along a path depths ascend by one: the nodes that a row sees lie 0, 1, 2 … places back, counted from the end.
        back = self.sees.flip(-1).cumsum(-1).flip(-1) - 1
        return self.sees & (back < window)


@dataclass(frozen=True)
class Span:
    """``count`` new tokens of the sequence in ``slot``, for the cache entries ``start`` to ``start + count - 1``.

    They stand at the positions of the same numbers, each behind the one before it, unless ``branches`` says otherwise.
    """

    slot: int
    start: int
    count: int
    branches: Branches | None = None

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def positions(self) -> list[int]:
        """The position of each row."""
        if self.branches is None:
            return list(range(self.start, self.end))
        return [self.branches.trunk + depth for depth in self.branches.depths]


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

    #: Whether the entries of a prefix serve any sequence that begins with it.
    prefixes_can_be_shared = True

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one entry over all layers."""
        return sum(kv[0].numel() * kv.element_size() for kv in self.kv)

    @torch.inference_mode()
    def copy(self, source: int, slot: int, count: int) -> None:
        """Copy the first ``count`` entries of ``source`` into ``slot``."""
        begin, end = source * self.max_len, slot * self.max_len
        for kv in self.kv:
            kv[end : end + count] = kv[begin : begin + count]

    def release(self, slot: int) -> None:
        """The entries of ``slot`` are worth nothing: on CPU their memory goes back to the system."""
        if self.kv[0].device.type == "cpu":
            for kv in self.kv:
                give_back(kv[slot * self.max_len : (slot + 1) * self.max_len])

    def keys_values(self, layer: int, slots: slice, length: int) -> tuple[Tensor, Tensor]:
        """Views [slots, kv_heads, length, head_dim] of the first ``length`` entries."""
        kv = self.kv[layer].view(self.num_slots, self.max_len, 2 * self.kv_heads, -1)[slots, :length].transpose(1, 2)
        return kv[:, : self.kv_heads], kv[:, self.kv_heads :]

    @torch.inference_mode()
    def move(self, slot: int, start: int, kept: Sequence[int]) -> None:
        """Let the entries ``start + kept[i]`` of a slot follow one another from ``start`` on; ``kept`` ascends."""
        begin = slot * self.max_len + start
        source = torch.tensor([begin + row for row in kept], device=self.kv[0].device)
        for kv in self.kv:
            kv[begin : begin + len(kept)] = kv.index_select(0, source)
