"""Prefix caching, memory that runs out, and order: none of them changes an answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from specctl.errors import SpecctlError
from specctl.runtime import Engine, EngineOptions, Request, Target, make_engine
from specctl.runtime.kv_cache import KVCache
from specctl.runtime.prefix import common
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram, Suffix
from tests.runtime.head_kit import make_head
from tests.runtime.kit import ask, run

DRAFTS = ("none", "ngram", "suffix", "relative", "eagle", "eagle3", "mtp-qwen3_next", "dflash", "medusa-vllm")
SYSTEM = [random.Random(1).randrange(256) for _ in range(37)]


@pytest.fixture
def engine(exact: Callable[..., Target], relative: Callable[..., Path], tmp_path: Path) -> Callable[..., Engine]:
    """An engine by its draft."""

    def get(draft: str, **options: Any) -> Engine:
        spec: SpecDecodeConfig | None = None
        if draft == "ngram":
            spec = SpecDecodeConfig(Ngram(prompt_lookup_min=1, prompt_lookup_max=3), 3)
        elif draft == "suffix":
            spec = SpecDecodeConfig(Suffix(min_token_prob=0.0), 3)
        elif draft == "relative":
            spec = SpecDecodeConfig(DraftModel(), 3, model=str(relative()))
        elif draft != "none":
            made = make_head(draft, exact(), tmp_path / draft)
            spec = SpecDecodeConfig(made.method, 3, model=str(made.folder))
        return make_engine(exact(), spec, EngineOptions(**{"max_num_seqs": 3, "max_num_batched_tokens": 16} | options))

    return get


def conversations() -> list[list[Request]]:
    """Rounds of requests: the same system prompt, then the same conversations going on, then nearly the same."""
    first = [[*SYSTEM, *part] for part in (b"abc" * 8, b"xy" * 12, b"hello" * 5)]
    second = [[*prompt, *b" go on"] for prompt in first]
    third = [[*SYSTEM[:20], *b"other"], first[0], first[1][:-1]]
    return [
        [ask(f"{i}-{j}", prompt, max_tokens=9, ignore_eos=True) for j, prompt in enumerate(prompts)]
        for i, prompts in enumerate([first, second, third])
    ]


def recorded(engine: Engine) -> dict[tuple[str, int], list[int]]:
    """What the engine's proposer will draft, by request and place."""
    seen: dict[tuple[str, int], list[int]] = {}
    proposer: Any = engine.proposer
    propose = proposer.propose if proposer else None

    def record(sequences: Any, limits: Any) -> Any:
        drafts = propose(sequences, limits)
        seen.update({(s.request.id, len(s.tokens)): draft.tokens for s, draft in zip(sequences, drafts, strict=True)})
        return drafts

    if proposer:
        proposer.propose = record
    return seen


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_prefix_from_the_cache_changes_no_token_and_no_draft(draft: str, engine: Callable[..., Engine]) -> None:
    """Equal drafts show that a head that lives on hidden states had the right ones."""
    cached, fresh = engine(draft, prefix_caching=True), engine(draft)
    drafts = recorded(cached), recorded(fresh)
    for requests in conversations():
        left, right = run(cached, requests), run(fresh, requests)
        for request in requests:
            # The shared tree of suffix decoding holds what others have said by then, and they are further on.
            unequal = {"stats": None} if draft == "suffix" else {}
            assert left[request.id] | unequal == right[request.id] | unequal, request.id
    assert cached.prefix_caching
    counters = cached.counters
    assert counters.prefix_hits >= 6 * 16
    assert counters.prefix_queries > counters.prefix_hits
    assert fresh.counters.prefix_queries == 0
    assert draft == "suffix" or drafts[0] == drafts[1]
    assert draft == "none" or any(drafts[0].values())


def test_what_was_left_survives_while_slots_are_free(engine: Callable[..., Engine]) -> None:
    """One request at a time takes the lowest slot each time; the conversations before it move aside."""
    cached = engine("none", prefix_caching=True, max_num_seqs=4)
    first, second, _ = conversations()
    for request in [*first, *second]:
        run(cached, [request])
    reused = [common(a.prompt_token_ids, b.prompt_token_ids) for a, b in zip(first, second, strict=True)]
    assert cached.counters.prefix_hits == sum(reused) + 2 * len(SYSTEM)


def test_prompt_logprobs_are_computed_whatever_the_cache_holds(engine: Callable[..., Engine]) -> None:
    cached = engine("none", prefix_caching=True)
    request = ask("x", [*SYSTEM, 1], max_tokens=2, prompt_logprobs=0)
    emissions = []
    for _ in range(2):
        cached.add(request)
        while cached.has_work():
            emissions += cached.step()
    scored = [emission.prompt_logprobs for emission in emissions if emission.prompt_logprobs]
    assert [len(entries) for entries in scored] == [38, 38]
    assert cached.counters.prefix_hits == 0


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("prefix_caching", [False, True])
def test_preemption_loses_nothing(draft: str, prefix_caching: bool, engine: Callable[..., Engine]) -> None:
    roomy, tight = engine(draft), engine(draft, kv_cache_tokens=112, prefix_caching=prefix_caching)
    prompts = [list(b"abcabcabc"), list(b"hello world"), list(b"q"), SYSTEM, list(b"xyxy")]
    requests = [
        ask(f"{i}", prompt, max_tokens=45, ignore_eos=True, temperature=0.8 * (i % 2), seed=i)
        for i, prompt in enumerate(prompts)
    ]
    wanted, found = run(roomy, requests), run(tight, requests)
    for request in requests:
        if request.sampling.greedy or draft == "none":
            assert found[request.id]["tokens"] == wanted[request.id]["tokens"]
            assert found[request.id]["text"] == wanted[request.id]["text"]
        assert len(found[request.id]["tokens"]) == 45
    assert tight.counters.preemptions > 0
    assert roomy.counters.preemptions == 0
    assert tight.kv_usage == 0


def test_whoever_came_first_is_never_sent_away(engine: Callable[..., Engine]) -> None:
    tight = engine("none", kv_cache_tokens=112)
    for i in range(5):
        tight.add(ask(f"{i}", SYSTEM, max_tokens=50, ignore_eos=True))
    ends = []
    while tight.has_work():
        ends += [emission.request_id for emission in tight.step() if emission.finish_reason]
        arrivals = [s.arrival for s in tight._scheduler.running] + [s.arrival for s in tight._scheduler.waiting]
        assert max(arrivals[: tight.num_running], default=-1) <= min(arrivals[tight.num_running :], default=99)
    assert ends == ["0", "1", "2", "3", "4"]


def test_a_cache_too_small_for_one_conversation_is_refused(engine: Callable[..., Engine]) -> None:
    with pytest.raises(SpecctlError, match="holds 80 tokens; one conversation of max_model_len 96"):
        engine("none", kv_cache_tokens=80)
    assert engine("none", kv_cache_tokens=96)


def test_copying_and_giving_back_touch_one_slot() -> None:
    cache = KVCache(2, 3, 4096, 2, 8, torch.float32, torch.device("cpu"))
    for layer in cache.kv:
        layer.normal_()
    before = [layer.clone() for layer in cache.kv]
    cache.copy(0, 2, 100)
    cache.release(1)
    for layer, old in zip(cache.kv, before, strict=True):
        slots, olds = layer.view(3, 4096, -1), old.view(3, 4096, -1)
        assert torch.equal(slots[0], olds[0])
        assert torch.equal(slots[2, :100], olds[0, :100])
        assert torch.equal(slots[2, 100:], olds[2, 100:])
        assert torch.equal(slots[1], olds[1]) or not slots[1, 64:-64].any(), "whole pages read as zeros"
    assert cache.bytes_per_token == 2 * 2 * 2 * 8 * 4


@pytest.mark.parametrize("seed", range(5))
def test_the_common_beginning(seed: int) -> None:
    draw = random.Random(seed)
    left = [draw.randrange(2) for _ in range(draw.randrange(40))]
    right = [*left[: draw.randrange(len(left) + 1)], *[draw.randrange(2) for _ in range(3)]]
    slow = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    assert common(left, right) == slow
