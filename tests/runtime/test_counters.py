"""The counters of drafting without hidden states are exactly those of a straightforward loop over one sequence."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.stats import SpecStats
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram, Suffix
from tests.runtime.kit import ask, run
from tests.runtime.test_ngram import by_definition as ngram_place
from tests.runtime.test_suffix import by_definition as suffix_walk

K, NEW = 3, 16
Rule = Callable[[list[int]], list[int]]


def prompts() -> dict[str, list[int]]:
    dice = random.Random(12)
    return {f"{i}": [dice.randrange(97, 97 + 2 + i % 9) for _ in range(dice.randrange(1, 14))] for i in range(50)}


def ngram_rule(tokens: list[int]) -> list[int]:
    place = ngram_place(tokens, 1, 3, latest=False)
    return [] if place is None else tokens[place : place + K]


def suffix_rule(tokens: list[int]) -> list[int]:
    return list(suffix_walk([tokens], tokens, K, 24, 0.1).tokens)


def counted(rule: Rule, prompt: list[int], truth: list[int]) -> SpecStats:
    """Draft, compare with what plain decoding says, go on behind it."""
    stats, tokens = SpecStats(), [*prompt, truth[0]]
    while len(tokens) - len(prompt) < NEW:
        drafted, wanted = rule(tokens), truth[len(tokens) - len(prompt) :]
        accepted = 0
        while accepted < len(drafted) and drafted[accepted] == wanted[accepted]:
            accepted += 1
        stats.record(len(drafted), accepted)
        tokens += wanted[: accepted + 1]
    return stats


@pytest.mark.parametrize("method", ["ngram", "suffix", "draft_model"])
def test_counters_are_those_of_the_plain_loop(
    method: str, exact: Callable[..., Target], relative: Callable[..., Path]
) -> None:
    settings = {
        "ngram": SpecDecodeConfig(Ngram(1, 3), K),
        "suffix": SpecDecodeConfig(Suffix(max_cached_requests=0), K),
        "draft_model": SpecDecodeConfig(DraftModel(), K, str(relative())),
    }
    draft = AutoModelForCausalLM.from_pretrained(relative(), dtype=torch.float64)

    @torch.inference_mode()
    def draft_rule(tokens: list[int]) -> list[int]:
        drafted: list[int] = []
        for _ in range(K):
            drafted.append(int(draft(torch.tensor([[*tokens, *drafted]])).logits[0, -1].argmax()))
        return drafted

    rule = {"ngram": ngram_rule, "suffix": suffix_rule, "draft_model": draft_rule}[method]
    asked = prompts()
    longer = [ask(name, prompt, max_tokens=NEW + K, ignore_eos=True) for name, prompt in asked.items()]
    truth = run(Engine(exact(), None, EngineOptions(8)), longer)
    requests = [ask(name, prompt, max_tokens=NEW, ignore_eos=True) for name, prompt in asked.items()]
    engine = make_engine(exact(), settings[method], EngineOptions(8))
    results = run(engine, requests)
    for name, prompt in asked.items():
        assert results[name]["stats"] == counted(rule, prompt, truth[name]["tokens"]), name
    assert 0 < engine.stats.num_accepted_tokens < engine.stats.num_draft_tokens
