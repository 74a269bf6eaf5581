"""Lossless is law: with greedy decoding every method emits exactly the tokens of plain decoding."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram, Suffix
from tests.runtime.head_kit import make_head
from tests.runtime.kit import EOS, FAMILIES, OPTIONS, ask, run

DRAFTS = ("ngram", "suffix", "same", "relative", "stranger")
HEADS = ("eagle", "eagle3", "mtp-qwen3_next", "medusa-vllm", "mlp-speculator", "dflash")
PROMPTS = {
    "short": list(b"a"),
    "repeats": list(b"abcabcabcabc"),
    "long": [random.Random(5).randrange(256) for _ in range(45)],
    "text": list("naïve café – 日本".encode()),
    "edge": [random.Random(6).randrange(256) for _ in range(90)],
}


@pytest.fixture
def spec(
    checkpoint: Callable[..., Path], relative: Callable[..., Path], exact: Callable[..., Target], tmp_path: Path
) -> Callable[..., SpecDecodeConfig]:
    """A setting by the kind of its draft: how often it agrees differs from always to hardly ever."""

    def get(draft: str, family: str = "llama", k: int = 4, **keys: Any) -> SpecDecodeConfig:
        if draft == "ngram":
            return SpecDecodeConfig(Ngram(prompt_lookup_min=1, prompt_lookup_max=3), k)
        if draft == "suffix":
            return SpecDecodeConfig(Suffix(min_token_prob=0.0, max_spec_factor=2.0), k)
        if draft in HEADS:
            made = make_head(draft, exact(family), tmp_path / draft)
            return SpecDecodeConfig(made.method, min(k, 4), model=str(made.folder), **keys)
        folder = {"same": checkpoint(family), "stranger": checkpoint(family, 1)}.get(draft) or relative(family)
        return SpecDecodeConfig(DraftModel(), k, model=str(folder), **keys)

    return get


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_decoding_is_transformers_greedy_search(
    family: str, checkpoint: Callable[..., Path], exact: Callable[..., Target]
) -> None:
    oracle = AutoModelForCausalLM.from_pretrained(checkpoint(family), dtype=torch.float64)
    results = run(Engine(exact(family), None, OPTIONS), [ask(name, prompt) for name, prompt in PROMPTS.items()])
    for name, prompt in PROMPTS.items():
        room = min(24, 96 - len(prompt))
        out = oracle.generate(torch.tensor([prompt]), max_new_tokens=room, do_sample=False, pad_token_id=EOS)
        assert results[name]["tokens"] == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("draft", [*DRAFTS, *HEADS])
def test_a_draft_changes_no_token(
    family: str, draft: str, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    requests = [ask(name, prompt, ignore_eos=True) for name, prompt in PROMPTS.items()]
    plain = run(Engine(exact(family), None, OPTIONS), requests)
    drafted = run(make_engine(exact(family), spec(draft, family), OPTIONS), requests)
    for name in PROMPTS:
        assert drafted[name]["tokens"] == plain[name]["tokens"], name
        assert drafted[name]["text"] == plain[name]["text"], name
        assert drafted[name]["finish"] == plain[name]["finish"] == "length"


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("draft", [*DRAFTS, *HEADS])
@pytest.mark.parametrize("options", [EngineOptions(1), EngineOptions(3, None, 7), EngineOptions(8, 60, 64)], ids=str)
def test_neither_the_draft_length_nor_the_batch_changes_a_token(
    k: int, draft: str, options: EngineOptions, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    fitting = {name: prompt for name, prompt in PROMPTS.items() if len(prompt) < (options.max_model_len or 96)}
    requests = [ask(name, prompt, max_tokens=10 + 7 * i) for i, (name, prompt) in enumerate(fitting.items())]
    alone = {}
    for request in requests:
        plain = Engine(exact(), None, EngineOptions(1, options.max_model_len))
        alone |= run(plain, [request])
    drafted = run(make_engine(exact(), spec(draft, k=k), options), requests)
    for name in fitting:
        assert {**drafted[name], "stats": None} == {**alone[name], "stats": None}, name


def test_the_drafts_differ_in_how_much_is_accepted(
    exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    """Guards the tests above: every accept count from none to all must have happened in them."""
    length = {}
    seen: set[int] = set()
    for draft in DRAFTS:
        engine = make_engine(exact(), spec(draft), OPTIONS)
        run(engine, [ask(name, prompt, ignore_eos=True) for name, prompt in PROMPTS.items()])
        length[draft] = engine.stats.mean_acceptance_length or 0
        seen |= {j for j, times in enumerate(engine.stats.acceptance_length_histogram) if times}
    assert length["same"] > length["relative"] > length["stranger"]
    assert seen == {0, 1, 2, 3, 4}


def ends(block: list[int]) -> Iterator[dict[str, Any]]:
    """Every stop condition at every place of an output."""
    for place in range(1, len(block)):
        yield {"max_tokens": place}
        yield {"stop_token_ids": (block[place],)}
        text = bytes(token for token in block[max(0, place - 2) : place + 1] if token < 256).decode("utf-8", "ignore")
        if text:
            yield {"stop": (text,)}
            yield {"stop": (text, text[-1])}


@pytest.mark.parametrize("draft", [*DRAFTS, "eagle3", "medusa-vllm"])
@pytest.mark.parametrize("prompt", ["repeats", "text"])
def test_every_stop_condition_ends_where_plain_decoding_ends(
    draft: str, prompt: str, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    target = exact("qwen3")
    longest = run(Engine(target, None, OPTIONS), [ask("x", PROMPTS[prompt], max_tokens=16, ignore_eos=True)])
    names = count()
    requests = [ask(f"{next(names)}", PROMPTS[prompt], ignore_eos=True, **end) for end in ends(longest["x"]["tokens"])]
    plain = run(Engine(target, None, EngineOptions(1)), requests)
    drafted = run(make_engine(target, spec(draft, "qwen3", k=5), EngineOptions(16)), requests)
    for request in requests:
        assert {**drafted[request.id], "stats": None} == {**plain[request.id], "stats": None}, request.sampling
    assert {result["finish"] for result in plain.values()} == {"stop", "length"}


@pytest.mark.parametrize("draft", DRAFTS)
def test_eos_inside_an_accepted_block_ends_the_output(
    draft: str, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    target = exact()
    free = run(Engine(target, None, OPTIONS), [ask("x", PROMPTS["repeats"], ignore_eos=True)])["x"]["tokens"]
    places = {token: place for place, token in reversed(list(enumerate(free)))}
    original = target.eos_token_ids
    for token, place in places.items():
        target.__dict__["eos_token_ids"] = frozenset({token})  # what any token could be in another checkpoint
        try:
            result = run(make_engine(target, spec(draft, k=6), OPTIONS), [ask("x", PROMPTS["repeats"])])["x"]
        finally:
            target.__dict__["eos_token_ids"] = original
        assert result["tokens"] == free[: place + 1]
        assert (result["finish"], result["why"]) == ("stop", None)


def integrity(engine: Engine) -> None:
    """The caches of target and draft hold exactly what a fresh prefill of the standing tokens would put there."""
    caches = [(engine.target.model, engine._cache, {s.slot: s.num_computed for s in engine._scheduler.running})]
    proposer: Any = engine.proposer
    if hasattr(proposer, "_cache"):
        caches.append((proposer._model, proposer._cache, proposer._computed))
    for model, cache, computed in caches:
        for sequence in engine._scheduler.running:
            length = computed[sequence.slot]
            assert length <= len(sequence.tokens)
            if length == 0:
                continue
            fresh = model.make_cache(1, cache.max_len)
            model.forward(sequence.tokens[:length], [Span(0, 0, length)], fresh, [length - 1])
            begin = sequence.slot * cache.max_len
            for kept, clean in zip(cache.kv, fresh.kv, strict=True):
                torch.testing.assert_close(kept[begin : begin + length], clean[:length], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_caches_are_right_after_every_step(
    draft: str, sampled: bool, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    keys = {} if draft in ("ngram", "suffix") else {"draft_sample_method": "probabilistic"}
    engine = make_engine(exact(), spec(draft, k=3, **keys), EngineOptions(3, None, 9))
    how = {"temperature": 1.0, "seed": 3} if sampled else {}
    for name, prompt in PROMPTS.items():
        engine.add(ask(name, prompt, **how))
    for _ in range(200):
        if not engine.has_work():
            return
        engine.step()
        integrity(engine)
    raise AssertionError("the engine does not come to an end")


@pytest.mark.parametrize("draft", [None, "ngram", "relative", "eagle3", "mlp-speculator"])
def test_a_sampled_request_does_not_depend_on_what_shares_its_batch(
    draft: str | None, exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    how = {"temperature": 0.9, "top_p": 0.95, "top_k": 50, "min_p": 0.01, "ignore_eos": True}
    keys = {} if draft == "ngram" else {"draft_sample_method": "probabilistic"}
    setting = spec(draft, **keys) if draft else None
    requests = [ask(name, prompt, seed=11 + i, **how) for i, (name, prompt) in enumerate(PROMPTS.items())]
    together = run(make_engine(exact(), setting, OPTIONS), requests)
    for request in requests:
        alone = run(make_engine(exact(), setting, EngineOptions(1)), [request])
        assert alone[request.id] == together[request.id]


def test_aborting_frees_the_slot_and_disturbs_nobody(
    exact: Callable[..., Target], spec: Callable[..., SpecDecodeConfig]
) -> None:
    requests = [ask(name, prompt, ignore_eos=True) for name, prompt in PROMPTS.items()]
    plain = run(Engine(exact(), None, OPTIONS), requests)
    engine = make_engine(exact(), spec("relative"), EngineOptions(2))
    got: dict[str, list[int]] = {request.id: [] for request in requests}
    for request in requests:
        engine.add(request)
    for step in range(200):
        if step == 3:
            assert engine.abort("short")
            assert engine.abort("edge"), "a waiting request can be dropped too"
            assert not engine.abort("short")
            assert engine.num_running == 1
        for emission in engine.step():
            got[emission.request_id] += emission.token_ids
    assert not engine.has_work()
    for name in ("repeats", "long", "text"):
        assert got[name] == plain[name]["tokens"]
