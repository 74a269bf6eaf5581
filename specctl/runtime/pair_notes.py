"""What is odd about a draft beside its target, told when both are loaded: it runs, but may accept little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from specctl.modelinfo.depth import beyond_depth
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.fit import NOTE, check_fit, pair_of
from specctl.modelinfo.read import ModelProblem, facts_of, read_facts
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS

# Vocabularies are told by the proposer itself, and tap layers are refused where they could mean two things.
_TOLD_ELSEWHERE = frozenset(("tokenizer", "vocabulary", "tap layers"))


def pair_notes(target: Target, spec: SpecDecodeConfig, k: int) -> tuple[str, ...]:
    """One sentence a remark; none for methods without weights."""
    method = METHODS[spec.method.name]
    if not (method.needs_model or method.optional_model):
        return ()
    ours = facts_of(target.name, Path(target.folder))
    theirs = ours if spec.model is None else read_facts(spec.model)
    if isinstance(ours, ModelProblem) or isinstance(theirs, ModelProblem):
        return ()
    found = [] if spec.model is None else _checks(ours, theirs, spec.method.name)
    deep = beyond_depth(theirs, spec.method.name, k)
    if target.model.dtype == torch.float16 and ours.dtype == "bfloat16":
        found.append("dtype: both run in float16, the target was made in bfloat16: numbers may overflow")
    return tuple(found + ([f"draft length: {deep}"] if deep else []))


def _checks(target: ModelFacts, draft: ModelFacts, method: str) -> list[str]:
    pair = replace(pair_of(target, draft), method=method)
    odd = [check for check in check_fit(pair) if check.status == NOTE and check.name not in _TOLD_ELSEWHERE]
    return [f"{check.name}: {check.evidence}" for check in odd]
