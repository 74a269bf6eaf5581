"""One step of a flat batch through a network of transformers: its attention layers are handed our own attention.

transformers lets a model name its attention function. Ours finds the step it belongs to on the attention module, writes
the rows' keys and values into the cache's slots and attends block by block, as the native decoder does; the model's own
masks and caches are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from specctl.runtime.kv_cache import KVCache, Span
from specctl.runtime.models.attention import Plan, attend

ATTENTION = "specctl_flat"
_HOST = "specctl_step"


class LayeredCache:
    """A `KVCache` for each attention layer, made when its first rows show how many heads of which width it has.

    Layers without rows of their own, those that share another's or keep a recurrent state, have none. ``recurrent``:
    the states of recurrent layers, by layer.
    """

    def __init__(self, num_slots: int, max_len: int) -> None:
        self.num_slots = num_slots
        self.max_len = max_len
        self.recurrent: dict[int, Any] = {}
        self._layers: dict[int, KVCache] = {}

    @property
    def prefixes_can_be_shared(self) -> bool:
        """Whether the entries of a prefix serve any sequence that begins with it; a recurrent state has no entries."""
        return not self.recurrent

    def layer(self, index: int, like: Tensor | None = None) -> KVCache:
        """The cache of attention layer ``index``; ``like`` [T, kv_heads, head_dim] are rows that it will hold."""
        if index not in self._layers:
            assert like is not None, "a layer is read after rows were written"
            heads, width = like.shape[1:]
            self._layers[index] = KVCache(1, self.num_slots, self.max_len, heads, width, like.dtype, like.device)
        return self._layers[index]

    def copy(self, source: int, slot: int, count: int) -> None:
        """As `KVCache.copy`, in every layer."""
        for layer in self._layers.values():
            layer.copy(source, slot, count)

    def release(self, slot: int) -> None:
        """As `KVCache.release`, in every layer."""
        for layer in self._layers.values():
            layer.release(slot)
        for states in self.recurrent.values():
            states.pop(slot, None)

    def move(self, slot: int, start: int, kept: Sequence[int]) -> None:
        """As `KVCache.move`, in every layer."""
        for layer in self._layers.values():
            layer.move(slot, start, kept)


@dataclass
class Step:
    """What the attention layers of one network need to know of the step that runs; set anew for each forward."""

    cache: LayeredCache | None = None
    plan: Plan | None = None
    spans: list[Span] = field(default_factory=list)

    def attend(
        self,
        layer: int,
        query: Tensor,
        rows: tuple[Tensor, Tensor] | None,
        window: int | None,
        scale: float,
        sinks: Tensor | None,
    ) -> Tensor:
        """Output [T, heads * width of a value] of ``query`` [T, heads, dim]; ``rows``: keys and values to write before
        it.
        """
        assert self.cache is not None, "set before the network runs"
        assert self.plan is not None, "set before the network runs"
        width = 0
        if rows is not None:
            keys, values = rows
            width = values.shape[-1]
            kept = self.cache.layer(layer, keys)
            values = nn.functional.pad(values, (0, keys.shape[-1] - width))
            kept.kv[0].index_copy_(0, self.plan.write, torch.cat([keys, values], dim=1))
        out = attend(query, 0, self.cache.layer(layer), self.plan, window, scale, sinks)
        if width in (0, query.shape[-1]):
            return out
        return out.view(len(query), query.shape[1], -1)[..., :width].flatten(1)


@dataclass(frozen=True)
class Host:
    """What hangs on an attention module: its network's step, whose entries it reads, and whether it writes them."""

    step: Step
    layer: int
    writes: bool


def host(module: nn.Module, step: Step, layer: int, writes: bool = True) -> None:
    """Let the attention ``module`` work on ``step`` with the cache entries of ``layer``."""
    setattr(module, _HOST, Host(step, layer, writes))


def _flat_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: Tensor | None = None,
    *,
    scaling: float,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Under transformers' interface: [1, heads, T, dim] in, [1, T, heads, width of a value] out."""
    assert softcap is None, "families whose scores are capped are not listed as flat"
    found: Host = getattr(module, _HOST)
    heads = query.shape[1]
    rows = (_rows(key), _rows(value)) if found.writes else None
    out = found.step.attend(found.layer, _rows(query), rows, sliding_window, scaling, s_aux)
    return out.view(1, len(out), heads, -1), None


def _rows(states: Tensor) -> Tensor:
    """[1, heads, T, dim] as [T, heads, dim]."""
    return states[0].transpose(0, 1)


AttentionInterface.register(ATTENTION, _flat_attention)
