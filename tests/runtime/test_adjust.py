"""Bans, biases and penalties: what they do to a row, and that a draft does not change what they lead to."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
)

from specctl.runtime import Engine, EngineOptions, SamplingParams, Target, make_engine
from specctl.runtime.adjust import make_adjustment
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.runtime.kit import OPTIONS, ask, run

VOCAB, EOS = 12, 11
PROMPT, OUTPUT, DRAFTED = [1, 2, 3, 2], [2, 4, 4], [4, 2, 5]


def adjusted(logits: Tensor, **sampling: Any) -> Tensor:
    """Rows of a block that drafted `DRAFTED` behind `PROMPT` and `OUTPUT`."""
    params = SamplingParams(max_tokens=50, **sampling)
    adjustment = make_adjustment(params, PROMPT, frozenset({EOS}), VOCAB, torch.device("cpu"))
    assert adjustment is not None
    for token in OUTPUT:
        adjustment.take(token)
    return adjustment.apply(logits, [DRAFTED[:i] for i in range(len(DRAFTED) + 1)])


def by_transformers(logits: Tensor, processor: Any) -> Tensor:
    """The same rows one by one, the drafted tokens before each in the text."""
    rows = []
    for i, row in enumerate(logits):
        text = torch.tensor([PROMPT + OUTPUT + DRAFTED[:i]])
        rows.append(processor(text, row.unsqueeze(0).clone())[0])
    return torch.stack(rows)


ORACLES = {
    "repetition": ({"repetition_penalty": 1.7}, lambda: RepetitionPenaltyLogitsProcessor(1.7)),
    "bad words": (
        {"bad_words": ((5,), (4, 2), (4, 4, 4), (2, 5, 0))},
        lambda: NoBadWordsLogitsProcessor([[5], [4, 2], [4, 4, 4], [2, 5, 0]], eos_token_id=None),
    ),
    "bias": (
        {"logit_bias": ((3, 2.5), (7, -4.0))},
        lambda: SequenceBiasLogitsProcessor([[[3], 2.5], [[7], -4.0]]),
    ),
    "min tokens": (
        {"min_tokens": 5},
        lambda: MinNewTokensLengthLogitsProcessor(len(PROMPT), 5, EOS),
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_rows_are_what_transformers_makes_of_each_alone(name: str) -> None:
    sampling, processor = ORACLES[name]
    logits = torch.randn(4, VOCAB, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    kept = logits.clone()
    torch.testing.assert_close(adjusted(logits, **sampling), by_transformers(logits, processor()))
    assert torch.equal(logits, kept), "the rows that logprobs are read from stay as they are"


def test_frequency_and_presence_count_the_output_and_the_drafted_path() -> None:
    rows = adjusted(torch.zeros(4, VOCAB), frequency_penalty=0.5, presence_penalty=1.0)
    # Output 2 4 4, then 4, 2, 5 drafted; the prompt does not count.
    counts = [{2: 1, 4: 2}, {2: 1, 4: 3}, {2: 2, 4: 3}, {2: 2, 4: 3, 5: 1}]
    for row, count in zip(rows, counts, strict=True):
        assert row.tolist() == [-(0.5 * count[t] + 1.0) if t in count else 0.0 for t in range(VOCAB)]


def test_only_allowed_tokens_stay() -> None:
    rows = adjusted(torch.zeros(4, VOCAB), allowed_token_ids=(3, 9))
    assert rows.isfinite().sum(dim=-1).tolist() == [2] * 4
    assert rows[:, [3, 9]].eq(0).all()


def test_stop_tokens_wait_for_min_tokens_but_not_for_an_ignored_eos() -> None:
    rows = adjusted(torch.zeros(4, VOCAB), min_tokens=5, stop_token_ids=(7,), ignore_eos=True)
    assert (rows[:, 7] == 0).tolist() == [False, False, True, True]
    assert rows[:, EOS].eq(0).all()


def test_a_request_that_asks_for_nothing_pays_nothing() -> None:
    assert make_adjustment(SamplingParams(), PROMPT, frozenset({EOS}), VOCAB, torch.device("cpu")) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("repetition_penalty", 0.0),
        ("min_tokens", 21),
        ("bad_words", ((),)),
        ("logprobs", -1),
    ],
)
def test_a_value_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field} is"):
        SamplingParams(max_tokens=20, **{field: value})


def mixes(count: int) -> list[dict[str, Any]]:
    """Random mixes of every option."""
    draw = random.Random(9)
    options: dict[str, Callable[[], Any]] = {
        "presence_penalty": lambda: draw.uniform(-2, 2),
        "frequency_penalty": lambda: draw.uniform(-2, 2),
        "repetition_penalty": lambda: draw.choice([0.8, 1.1, 1.5]),
        "logit_bias": lambda: tuple((draw.randrange(258), draw.uniform(-8, 8)) for _ in range(5)),
        "bad_words": lambda: tuple(tuple(draw.randrange(258) for _ in range(draw.choice([1, 2]))) for _ in range(40)),
        "min_tokens": lambda: draw.randrange(12),
        "stop_token_ids": lambda: tuple(draw.randrange(256) for _ in range(30)),
        "stop": lambda: tuple(chr(draw.randrange(33, 127)) for _ in range(8)),
        "allowed_token_ids": lambda: tuple(range(draw.randrange(40), 257)),
        "min_p": lambda: 0.05,
        "logprobs": lambda: draw.randrange(4),
    }
    return [
        {name: value() for name, value in options.items() if draw.random() < 0.4} | {"seed": i} for i in range(count)
    ]


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "coupled"])
@pytest.mark.parametrize("draft", ["ngram", "relative"])
def test_a_draft_changes_nothing_under_any_mix(
    draft: str, temperature: float, exact: Callable[..., Target], relative: Callable[..., Path]
) -> None:
    method = Ngram(prompt_lookup_min=1, prompt_lookup_max=3) if draft == "ngram" else DraftModel()
    coupled = Acceptance(method="coupled")
    model = None if draft == "ngram" else str(relative())
    spec = SpecDecodeConfig(method, 4, model=model, acceptance=coupled)
    prompt = list(b"abcabcabcabc")
    requests = [ask(f"{i}", prompt, temperature=temperature, **mix) for i, mix in enumerate(mixes(24))]
    alone = run(Engine(exact(), None, EngineOptions(1, coupled=True)), requests)
    engine = make_engine(exact(), spec, OPTIONS)
    together = run(engine, requests)
    for request in requests:
        left, right = alone[request.id], together[request.id]
        assert left["tokens"] == right["tokens"], request.sampling
        assert (left["text"], left["finish"], left["why"]) == (right["text"], right["finish"], right["why"])
        for one, other in zip(left["logprobs"], right["logprobs"], strict=True):
            assert (one.token, one.rank) == (other.token, other.rank)
            assert [t for t, _ in one.top] == [t for t, _ in other.top]
            assert one.logprob == pytest.approx(other.logprob, abs=1e-8)
    assert engine.stats.num_accepted_tokens, "drafts must stand now and then, or nothing was tried"
    assert {result["finish"] for result in alone.values()} == {"stop", "length"}


def test_logprobs_are_those_of_the_model_whatever_is_asked_of_the_row(exact: Callable[..., Target]) -> None:
    target = exact()
    how = {"logit_bias": ((65, 100.0),), "repetition_penalty": 1.5, "temperature": 0.7, "logprobs": 3, "max_tokens": 6}
    result = run(Engine(target, None, OPTIONS), [ask("x", list(b"hello"), **how)])["x"]
    assert result["tokens"] == [65] * 6
    from specctl.runtime.kv_cache import Span

    text = [*b"hello", *result["tokens"]]
    logits = target.model.forward(text, [Span(0, 0, 11)], target.model.make_cache(1, 11), range(11))
    wanted = logits.log_softmax(-1)[4:10]
    for entry, row in zip(result["logprobs"], wanted, strict=True):
        assert entry.logprob == pytest.approx(float(row[65]), abs=1e-10)
        assert entry.rank == int((row > row[65]).sum()) + 1
        assert [t for t, _ in entry.top] == row.topk(3).indices.tolist()


def test_a_stop_string_waits_for_min_tokens(exact: Callable[..., Target]) -> None:
    free = run(Engine(exact(), None, OPTIONS), [ask("x", list(b"abc"), ignore_eos=True)])["x"]
    text = free["text"]
    letter = next(c for c in text if text.count(c) > 1)
    how = {"stop": (letter,), "ignore_eos": True}
    early, late = (
        run(Engine(exact(), None, OPTIONS), [ask("x", list(b"abc"), min_tokens=least, **how)])["x"] for least in (0, 20)
    )
    assert letter not in early["text"]
    assert len(late["tokens"]) >= 20
    assert text.startswith(late["text"])
