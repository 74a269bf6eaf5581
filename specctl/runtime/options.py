"""What an engine is given, and what it counts beside the acceptance."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from specctl.runtime.integrity import wanted

DRAFT_CHECK = "SPECCTL_DRAFT_CHECK"


def draft_check_wanted() -> bool:
    """Yes, unless the environment says no."""
    return os.environ.get(DRAFT_CHECK, "1") not in ("", "0")


@dataclass(frozen=True)
class EngineOptions:
    """Limits of an engine. ``max_num_batched_tokens``: rows a step may have before prefill chunks have to wait.

    ``max_model_len`` None takes the target's own context. ``coupled``: noise fixed by seed and place, so that sampled
    text does not depend on the draft (see `specctl.runtime.acceptance.Coupled`); a draft's setting asks for it by its
    ``acceptance``, this option by itself serves plain decoding. ``kv_cache_tokens``: cache entries that all sequences
    together may have, None for as many as all slots could need. ``prefix_caching``: begin with what earlier requests
    left in the cache. ``measured_length``: a draft's length follows measured acceptance and times instead of the
    setting, which it never exceeds. ``check_cache``: look for stale rows in the caches. ``draft_check``: try at
    the start whether a small change makes the draft follow the target better (`specctl.runtime.probing.check`).
    Raises ValueError for limits below 1.
    """

    max_num_seqs: int = 16
    max_model_len: int | None = None
    max_num_batched_tokens: int = 512
    seed: int = 0
    coupled: bool = False
    kv_cache_tokens: int | None = None
    prefix_caching: bool = False
    measured_length: bool = False
    check_cache: bool = field(default_factory=wanted)
    draft_check: bool = field(default_factory=draft_check_wanted)

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_model_len", "max_num_batched_tokens", "kv_cache_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class Counters:
    """Counted since the start, beside the acceptance: preemptions, prompt tokens looked up in the prefix cache and
    found there, requests whose proposer was switched off because it threw.
    """

    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    proposer_failures: int = 0
