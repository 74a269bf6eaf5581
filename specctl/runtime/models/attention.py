"""Attention of one flat batch: rows of many sequences against their slots of the KV cache.

Rows of decoding sequences (one token, or a draft of a few) are padded into one block over a dense range of slots, so
that a layer costs one kernel call however many sequences run; a prefill chunk is a block of its own. The query heads
that share a key head are folded into the query rows, which makes grouped-query attention plain attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.kv_cache import KVCache, Span

# Longest span that joins the padded block; beyond it padding would cost more than another kernel call.
MAX_PADDED_ROWS = 32


class Slotted(Protocol):
    """A cache with ``max_len`` entries for each slot, one slot after the other."""

    max_len: int


@dataclass
class Block:
    """Spans that one kernel call serves: ``batch`` slots from ``first_slot`` on, ``rows`` query rows each.

    ``positions`` [batch, rows]: the last position that each row sees. ``trees``: spans of nodes, by their place in the
    batch; within their tree they see what their `Branches` say.
    """

    first_slot: int
    batch: int
    rows: int
    length: int
    gather: Tensor | None
    scatter: Tensor | None
    out_rows: Tensor | None
    positions: Tensor
    trees: list[tuple[int, Span]]
    masks: dict[int | None, Tensor | None] = field(default_factory=dict)


@dataclass
class Plan:
    """Where a step's rows go: ``write``: [T] entries of the cache; ``positions``: [T]; the blocks to attend in."""

    positions: Tensor
    write: Tensor
    blocks: list[Block]


def make_plan(spans: Sequence[Span], cache: Slotted, device: torch.device, causal: bool = True) -> Plan:
    """The plan for ``spans``, whose tokens follow one another in the flat batch; not ``causal``: a row sees its whole
    span.
    """
    positions = [p for span in spans for p in span.positions]
    write = [span.slot * cache.max_len + entry for span in spans for entry in range(span.start, span.end)]
    offset, starts = 0, []
    for span in spans:
        starts.append(offset)
        offset += span.count
    short = [i for i, span in enumerate(spans) if span.count <= MAX_PADDED_ROWS]
    groups = [[i] for i, span in enumerate(spans) if span.count > MAX_PADDED_ROWS]
    groups += [short] if short else []
    blocks = [
        _block([spans[i] for i in group], [starts[i] for i in group], len(positions), device, causal)
        for group in groups
    ]
    return Plan(torch.tensor(positions, device=device), torch.tensor(write, device=device), blocks)


def _block(spans: list[Span], starts: list[int], total: int, device: torch.device, causal: bool) -> Block:
    first = min(span.slot for span in spans)
    batch = max(span.slot for span in spans) - first + 1
    rows = max(span.count for span in spans)
    gather, scatter, out_rows = [0] * (batch * rows), [], []
    positions = [[0] * rows for _ in range(batch)]
    for span, start in zip(spans, starts, strict=True):
        place = span.slot - first
        for i, position in enumerate(span.positions):
            gather[place * rows + i] = start + i
            scatter.append(place * rows + i)
            out_rows.append(start + i)
            positions[place][i] = position if causal else span.end - 1
    whole = batch * rows == total and gather == list(range(total))

    def index(values: list[int]) -> Tensor | None:
        return None if whole else torch.tensor(values, device=device)

    length = max(span.end for span in spans)
    return Block(
        first,
        batch,
        rows,
        length,
        index(gather),
        index(scatter),
        index(out_rows),
        torch.tensor(positions, device=device),
        [(span.slot - first, span) for span in spans if span.branches is not None],
    )


def _mask(block: Block, window: int | None, groups: int, dtype: torch.dtype) -> Tensor | None:
    """Additive mask [batch, 1, groups * rows (or 1), length]; None where every row sees everything."""
    if block.batch == 1 and block.rows == 1 and not block.trees and (window is None or block.length <= window):
        return None
    keys = torch.arange(block.length, device=block.positions.device)
    queries = block.positions.unsqueeze(-1)
    hidden = keys > queries
    if window is not None:
        hidden |= keys <= queries - window
    for place, span in block.trees:
        branches = span.branches
        assert branches is not None, "only spans of nodes are kept as trees"
        # Within a tree the number of an entry is no position.
        hidden[place, : span.count, branches.trunk : span.end] = ~branches.within(window).to(hidden.device)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, float("-inf"))
    return mask.repeat(1, groups, 1).unsqueeze(1) if block.rows > 1 else mask.unsqueeze(1)


def _with_sinks(
    folded: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, sinks: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One more key of zeros, so that its score is 0 plus what the mask adds, which is the head's sink."""
    batch, kv_heads, rows, _ = folded.shape
    groups = sinks.numel() // kv_heads
    column = sinks.to(folded.dtype).view(1, kv_heads, groups, 1).expand(batch, -1, -1, rows // groups)
    seen = folded.new_zeros(()) if mask is None else mask
    seen = seen.expand(batch, kv_heads, rows, keys.shape[2])
    nothing = keys.new_zeros(batch, kv_heads, 1, keys.shape[3])
    return (
        torch.cat([keys, nothing], dim=2),
        torch.cat([values, nothing], dim=2),
        torch.cat([seen, column.reshape(batch, kv_heads, rows, 1)], dim=3),
    )


def attend(
    query: Tensor,
    layer: int,
    cache: KVCache,
    plan: Plan,
    window: int | None,
    scale: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention output [T, heads * head_dim] of ``query`` [T, heads, head_dim] over the cache of ``layer``.

    ``scale`` of the scores: None is 1 / sqrt(head_dim). ``sinks`` [heads]: a score that takes its share of each row's
    attention and adds nothing to the output.
    """
    heads, dim = query.shape[1:]
    groups = heads // cache.kv_heads
    out: Tensor | None = None
    for block in plan.blocks:
        if window not in block.masks:
            block.masks[window] = _mask(block, window, groups, query.dtype)
        rows = query if block.gather is None else query.index_select(0, block.gather)
        folded = rows.view(block.batch, block.rows, cache.kv_heads, groups, dim).permute(0, 2, 3, 1, 4)
        folded = folded.reshape(block.batch, cache.kv_heads, groups * block.rows, dim)
        slots = slice(block.first_slot, block.first_slot + block.batch)
        keys, values = cache.keys_values(layer, slots, block.length)
        mask = block.masks[window]
        if sinks is not None:
            keys, values, mask = _with_sinks(folded, keys, values, mask, sinks)
        mixed = F.scaled_dot_product_attention(folded, keys, values, attn_mask=mask, scale=scale)
        mixed = mixed.view(block.batch, cache.kv_heads, groups, block.rows, dim).permute(0, 3, 1, 2, 4)
        flat = mixed.reshape(block.batch * block.rows, heads * dim)
        if block.out_rows is None or block.scatter is None:
            return flat
        out = query.new_empty(query.shape[0], heads * dim) if out is None else out
        out.index_copy_(0, block.out_rows, flat.index_select(0, block.scatter))
    assert out is not None, "a plan has at least one block"
    return out
