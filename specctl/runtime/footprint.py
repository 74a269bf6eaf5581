"""Bytes that an engine holds: KV caches and draft weights, counted from its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from specctl.runtime.engine import Engine

_OURS = ("specctl.", "torch.nn", "transformers.", "builtins", "collections")


def footprint(engine: Engine) -> dict[str, int | None]:
    """`kv_cache_bytes` of the target, `draft_weight_bytes` and `draft_kv_cache_bytes` (None without a draft model).

    A draft's tensors that belong to the target (shared embeddings, its output head) are not counted again.
    """
    seen: set[int] = set()
    for _ in _tensors(engine.target, seen):
        pass
    kv = _bytes(tensor for _, tensor in _tensors(engine._cache, seen))
    if engine.proposer is None:
        return {"kv_cache_bytes": kv, "draft_weight_bytes": None, "draft_kv_cache_bytes": None}
    found = list(_tensors(engine.proposer, seen))
    weights = _bytes(tensor for cached, tensor in found if not cached)
    caches = _bytes(tensor for cached, tensor in found if cached)
    return {
        "kv_cache_bytes": kv,
        "draft_weight_bytes": weights or None,
        "draft_kv_cache_bytes": caches or None,
    }


def tensor_bytes(thing: Any) -> int:
    """Bytes of all tensors that hang on ``thing``, each counted once."""
    return _bytes(tensor for _, tensor in _tensors(thing, set()))


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _tensors(thing: Any, seen: set[int], cached: bool = False) -> Iterator[tuple[bool, torch.Tensor]]:
    """Every tensor that hangs on `thing` and was not seen yet, and whether it lies in a cache."""
    waiting = [(thing, cached)]
    while waiting:
        thing, cached = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            yield cached, thing
        else:
            inside = cached or "Cache" in type(thing).__name__
            waiting += [(part, inside) for part in _parts(thing)]


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        # Lists of numbers (token ids, tries) hold no tensors.
        return [part for part in thing if not isinstance(part, int | float | str | bytes)]
    if type(thing).__module__.startswith(_OURS) and not isinstance(thing, type):
        return list(getattr(thing, "__dict__", {}).values())
    return []
