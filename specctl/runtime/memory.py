"""Bytes for conversations: what a token costs in the caches, how much memory there is, and what fits into it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from specctl.runtime.engine import Engine
from specctl.runtime.footprint import footprint, tensor_bytes
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.loading import Model
from specctl.runtime.scheduler import BLOCK
from specctl.runtime.target import Target

# Of the memory that is free on a CPU, which other processes want too.
CPU_SHARE = 0.5


def kv_bytes_per_token(model: Model) -> int:
    """Bytes that a token takes in the caches of ``model``, counted after computing a few; recurrent states, which do
    not grow, are none of them.
    """
    cache = model.make_cache(1, BLOCK)
    model.forward([0] * BLOCK, [Span(0, 0, BLOCK)], cache, [BLOCK - 1])
    return (tensor_bytes(cache) - tensor_bytes(getattr(cache, "recurrent", None))) // BLOCK


def free_memory(device: torch.device, share: float) -> int:
    """Bytes for the caches: of a GPU ``share`` of all its memory less what is in use, of a CPU half of what is free."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return max(0, int(total * share) - (total - free))
    return int(_available() * CPU_SHARE)


def _available() -> int:
    import os

    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) * 1024
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of the weights, and of a token in the caches of target and draft; ``budget``: bytes that the caches may
    have; ``kv_tokens``: cache entries that are used of it; ``max_model_len`` in tokens.
    """

    weights: int
    draft_weights: int
    kv_per_token: int
    draft_kv_per_token: int
    budget: int
    kv_tokens: int
    max_model_len: int

    @property
    def conversations(self) -> int:
        """Conversations of ``max_model_len`` tokens that the budget holds, all full."""
        return self.budget // (self.max_model_len * (self.kv_per_token + self.draft_kv_per_token))

    @property
    def displaced(self) -> int:
        """How many more there would be without the draft's weights and cache."""
        alone = (self.budget + self.draft_weights) // (self.max_model_len * self.kv_per_token)
        return alone - self.conversations


def plan_memory(target: Target, engine: Engine, budget: int) -> MemoryPlan:
    """The plan of an engine whose caches may have ``budget`` bytes."""
    found = footprint(engine)
    return MemoryPlan(
        weights=tensor_bytes(target.model),
        draft_weights=found["draft_weight_bytes"] or 0,
        kv_per_token=kv_bytes_per_token(target.model),
        draft_kv_per_token=draft_kv_per_token(engine),
        budget=budget,
        kv_tokens=engine.kv_cache_tokens,
        max_model_len=engine.max_model_len,
    )


def draft_kv_per_token(engine: Engine) -> int:
    """Bytes that a token takes in the caches of the draft; 0 without one."""
    proposer = engine.proposer
    if proposer is None:
        return 0
    model = getattr(proposer, "_model", None)  # a draft that is a model of its own may make its cache as it goes
    if model is not None:
        return kv_bytes_per_token(model)
    entries = engine.num_slots * engine.max_model_len
    return -(-(footprint(engine)["draft_kv_cache_bytes"] or 0) // entries)
