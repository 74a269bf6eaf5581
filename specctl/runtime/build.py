"""Putting an engine together from a target and a spec, and the facts about a run that reports need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import torch

from specctl.planning.alarm import has_weights
from specctl.runtime.acceptance import make_verifier
from specctl.runtime.draft_length import make_draft_length
from specctl.runtime.engine import Engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.options import EngineOptions
from specctl.runtime.pair_notes import pair_notes
from specctl.runtime.probing.check import draft_check
from specctl.runtime.proposers import Slots, make_proposer
from specctl.runtime.target import Target
from specctl.spec.config import Acceptance, SpecDecodeConfig

# Kernels give other bits for other batch widths, so the two best logits may change places when they lie closer than
# this.
_NEAR_TIE = {torch.float64: 0.0, torch.float32: 1e-3, torch.float16: 5e-2, torch.bfloat16: 2.5e-1}


def make_engine(target: Target, spec: SpecDecodeConfig | None, options: EngineOptions) -> Engine:
    """An engine that decodes plainly (``spec`` None) or speculates as ``spec`` says.

    Raises SpecctlError where the method does not run here or its draft does not fit the target.
    """
    if spec is None:
        return Engine(target, None, options)
    max_len = min(options.max_model_len or target.max_model_len, target.max_model_len)
    slots = Slots(options.max_num_seqs, max_len, options.max_num_batched_tokens, options.check_cache)
    proposer = make_proposer(spec, target, slots)
    if options.coupled and spec.acceptance == Acceptance():
        spec = replace(spec, acceptance=Acceptance(method="coupled"))
    k = proposer.num_speculative_tokens
    length = make_draft_length(spec, k, measured=options.measured_length)
    engine = Engine(target, proposer, options, make_verifier(spec, k), length)
    engine.remarks = pair_notes(target, spec, k)
    if options.draft_check and has_weights(spec.method.name):
        engine.remarks += draft_check(engine, spec)
    return engine


def top_margin(target: Target, token_ids: Sequence[int]) -> float:
    """The best logit minus the second best after ``token_ids``, from one plain forward."""
    cache = target.model.make_cache(1, len(token_ids))
    logits = target.model.forward(token_ids, [Span(0, 0, len(token_ids))], cache, [len(token_ids) - 1])
    first, second = logits[0].float().topk(2).values.tolist()
    return float(first - second)


def near_tie_margin(target: Target) -> float:
    """The margin up to which a differing token is a near-tie of the top two logits; 0 in float64."""
    return _NEAR_TIE[target.model.dtype]


def environment(target: Target) -> dict[str, Any]:
    """What a report must state about the runtime, in the names of `bench --output-json`."""
    return {
        "specctl": metadata.version("specctl"),
        "engine": "specctl",
        "release": metadata.version("specctl"),
        "torch": torch.__version__,
        "device": target.device,
        "dtype": target.dtype,
        "threads": torch.get_num_threads(),
    }
