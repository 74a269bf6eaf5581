"""Prompts of a wanted length, and goodput's promises."""

from __future__ import annotations

import pytest

from specctl.bench.goodput import goodput, read_promises
from specctl.bench.lengths import LEAD, Lengths, random_prompts, stretched
from specctl.bench.metrics import by_context, context_bucket
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Record
from specctl.bench.workloads import Workload, as_text
from specctl.errors import UsageError
from tests.bench.stand_ins import block, job, record


def words(prompt: Prompt) -> int:
    return len(as_text(prompt).split())


def prompts(*texts: str) -> Workload:
    found = [Prompt(f"p{n}", "all", ({"role": "user", "content": text},)) for n, text in enumerate(texts)]
    return Workload("x", tuple(found))


WORK = prompts("What is the tallest tower?", "one two three four five six seven eight", "Say it in " + "long " * 200)


def test_prompts_are_filled_with_real_text_and_end_with_their_question() -> None:
    found = stretched(WORK, Lengths((40, 100)), words, 0).prompts
    assert [prompt.id for prompt in found] == ["p0@40", "p0@100", "p1@40", "p1@100", "p2@40", "p2@100"]
    assert [words(prompt) for prompt in found[:4]] == [40, 100, 40, 100]
    assert found[0].messages[-1]["content"].endswith("\n\nWhat is the tallest tower?")
    known = {word for prompt in WORK.prompts for word in as_text(prompt).split()} | set(LEAD.split())
    assert set(as_text(found[1]).split()) <= known


def test_a_longer_prompt_stays_as_it_is() -> None:
    found = stretched(WORK, Lengths((40,)), words, 0).prompts[2]
    assert found.messages == WORK.prompts[2].messages


def test_one_prompt_alone_has_nothing_to_be_filled_with() -> None:
    with pytest.raises(UsageError, match="there is only one prompt"):
        stretched(prompts("hello"), Lengths((40,)), words, 0)


def test_random_tokens_say_what_they_are() -> None:
    work = random_prompts(4, [5, 9], 100, 0)
    assert [len(prompt.token_ids) for prompt in work.prompts] == [5, 9, 5, 9]
    assert all(0 <= token < 100 for prompt in work.prompts for token in prompt.token_ids)
    assert work.random_text
    assert "acceptance does not carry over" in work.notes[0]


@pytest.mark.parametrize(
    ("tokens", "bucket"),
    [(1, "0-255"), (255, "0-255"), (256, "256-511"), (2048, "2048-4095"), (200_000, "131072+"), (None, "unknown")],
)
def test_buckets_of_context(tokens: int | None, bucket: str) -> None:
    assert context_bucket(tokens) == bucket


def test_figures_by_context_are_of_their_requests() -> None:
    short, long = record(0, tpot_s=0.01), record(1, tpot_s=0.03)
    long.told_prompt_tokens = 3000
    found = by_context([long, short])
    assert list(found) == ["0-255", "2048-4095"]
    assert found["2048-4095"]["tpot_ms"]["mean"] == pytest.approx(30.0)


def test_promises_are_read_in_every_form() -> None:
    assert read_promises(["tpot:30", "ttft:500"]) == {"tpot": 30.0, "ttft": 500.0}
    assert read_promises(["tpot:30,e2el:2e3"]) == {"tpot": 30.0, "e2e": 2000.0}


@pytest.mark.parametrize("word", ["tpot", "tpot:", "tpot:fast", "tpot:-1", "itl:3", "tpot:inf", "tpot:nan"])
def test_promises_that_are_none(word: str) -> None:
    with pytest.raises(UsageError, match="is no promise"):
        read_promises([word])


def test_goodput_counts_requests_that_keep_every_promise() -> None:
    """TTFT is 100 ms. In 2 s: TPOT 10, 20 and 40 ms, one token (no TPOT to break), one failure."""
    records = [record(n, tpot_s=tpot) for n, tpot in enumerate((0.01, 0.02, 0.04))]
    single, failed = record(3, tokens=[7]), record(4, error="died")
    blocks = [block(*records, single, failed, duration_s=2.0)]
    assert goodput(blocks, {"tpot": 20.5}) == {"request_goodput": 1.5, "goodput_share": 0.6}
    assert goodput(blocks, {"tpot": 20.5, "ttft": 99.0}) == {"request_goodput": 0.0, "goodput_share": 0.0}
    assert goodput(blocks, {}) == {"request_goodput": None, "goodput_share": None}
    assert goodput([], {"tpot": 1.0}) == {"request_goodput": None, "goodput_share": None}


def test_an_unknown_tpot_keeps_no_promise() -> None:
    unknown = Record(job(), 0.0, 0.1, 0.2, finish_reason="stop", counted=False)
    assert goodput([block(unknown)], {"tpot": 1000.0})["goodput_share"] == 0.0
