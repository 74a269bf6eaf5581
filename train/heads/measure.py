"""What a head is worth on held-out prompts: acceptance by category and by place, from the engine that serves it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from specctl.bench.workloads import DEMO_SET, SETS
from specctl.resources import bundled_dir
from specctl.runtime import EngineOptions, Request, SamplingParams, SpecStats, Target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS

K = 5
SEQUENCES = 16
Outputs = Mapping[str, list[int]]


def held_out_prompts(
    target: Target, per_category: int | None = None, name: str = DEMO_SET
) -> dict[str, list[list[int]]]:
    """The bundled bench prompts `name` by category, as the target's chat template renders them."""
    found: dict[str, list[list[int]]] = {}
    for line in (bundled_dir() / SETS[name]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["category"], []).append(target.encode_chat(row["messages"]))
    return {category: rows[:per_category] for category, rows in found.items()}


def run(
    target: Target, spec: SpecDecodeConfig | None, prompts: Mapping[str, Sequence[list[int]]], max_tokens: int
) -> tuple[dict[str, list[int]], dict[str, SpecStats]]:
    """Greedy outputs by request and counters by category."""
    longest = max(len(ids) for rows in prompts.values() for ids in rows)
    length = min(target.max_model_len, longest + max_tokens + 16)
    engine = make_engine(target, spec, EngineOptions(max_num_seqs=SEQUENCES, max_model_len=length))
    outputs: dict[str, list[int]] = {}
    stats = {name: SpecStats() for name in prompts}
    for name, rows in prompts.items():
        for i, ids in enumerate(rows):
            outputs[f"{name}-{i}"] = []
            engine.add(Request(f"{name}-{i}", ids, SamplingParams(max_tokens=max_tokens)))
    while engine.has_work():
        for emission in engine.step():
            outputs[emission.request_id] += emission.token_ids
            if emission.stats is not None:
                name = emission.request_id.rpartition("-")[0]
                stats[name] = stats[name] + emission.stats
    return outputs, stats


def evaluate(
    target: Target,
    method: str,
    folder: str,
    *,
    k: int = K,
    max_tokens: int = 128,
    per_category: int | None = None,
    prompt_set: str = DEMO_SET,
    plain: Outputs | None = None,
) -> dict[str, Any]:
    """evaluation.json of one head. `plain`: plain decoding's outputs, made here where not given."""
    prompts = held_out_prompts(target, per_category, prompt_set)
    outputs, stats = run(target, SpecDecodeConfig(METHODS[method](), k, model=folder), prompts, max_tokens)
    reference = plain if plain is not None else run(target, None, prompts, max_tokens)[0]
    same = sum(outputs[name] == reference[name] for name in outputs)
    total = sum(stats.values(), SpecStats())
    return {
        "k": k,
        "prompt_set": prompt_set,
        "prompts": len(outputs),
        "max_tokens": max_tokens,
        "dtype": target.dtype,
        "outputs_identical_to_plain": same,
        **_figures(total),
        "conditional_acceptance_per_position": total.conditional_acceptance_per_position,
        "by_category": {name: _figures(each) for name, each in stats.items()},
    }


def _figures(stats: SpecStats) -> dict[str, Any]:
    return {
        "num_drafts": stats.num_drafts,
        "num_draft_tokens": stats.num_draft_tokens,
        "num_accepted_tokens": stats.num_accepted_tokens,
        "mean_acceptance_length": stats.mean_acceptance_length,
    }
