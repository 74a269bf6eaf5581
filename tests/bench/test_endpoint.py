"""A running server as a runner: times, counts, failures, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from specctl.bench.endpoint import KEEPALIVE_S, EndpointRunner, top_two
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Block, Job
from specctl.bench.server import Endpoint, root_of
from specctl.errors import MissingError, SpecctlError, UsageError
from specctl.runtime import SamplingParams
from tests.bench.scripted_server import Clock, Script, serving


def job(text: str = "hello", index: int = 0, at_s: float = 0.0, **sampling: Any) -> Job:
    prompt = Prompt(f"p{index}", "all", ({"role": "user", "content": text},))
    return Job(index, 0, prompt, SamplingParams(max_tokens=8, **sampling), at_s)


@contextmanager
def runner(script: Script, **options: Any) -> Iterator[EndpointRunner]:
    tokenize = options.pop("tokenize", None)
    with serving(script):
        clock = {} if script.clock is None else {"clock": script.clock}
        found = EndpointRunner("server", None, None, Endpoint(script.url, **options), tokenize, **clock)
        try:
            yield found
        finally:
            found.close()


def run(script: Script, *jobs: Job, concurrency: int = 1, **options: Any) -> Block:
    with runner(script, **options) as found:
        return found.run(jobs, concurrency)


def test_times_are_those_of_the_script_whatever_a_chunk_holds() -> None:
    """Chunks of 1, 3 and 2 tokens after 50, 20 and 30 ms: TTFT 50 ms, TPOT (20 + 30) / (6 - 1) = 10 ms."""
    script = Script(gaps_s=(0.05, 0.02, 0.03), clock=Clock())
    [record] = run(script, job()).records
    assert record.ttft_s == pytest.approx(0.05)
    assert record.tpot_s == pytest.approx(0.01)
    assert record.e2e_s == pytest.approx(0.1)
    assert record.gaps_s == [pytest.approx(0.02), pytest.approx(0.03)]
    assert (record.num_tokens, record.num_prompt_tokens, record.finish_reason) == (6, 11, "stop")


def test_a_block_lasts_from_the_first_submission_to_the_last_token() -> None:
    block = run(Script(gaps_s=(0.05, 0.02, 0.03), clock=Clock()), job(index=0), job(index=1))
    assert block.duration_s == pytest.approx(0.2)
    assert [record.job.index for record in block.records] == [0, 1]


def test_what_is_sent() -> None:
    script = Script()
    run(script, job(), job(temperature=0.7, top_p=0.9, seed=3), model="scripted", extra={"user": "bench"})
    greedy, sampled = script.requests
    assert greedy == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 8,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": "bench",
    }
    assert (sampled["temperature"], sampled["top_p"], sampled["seed"]) == (0.7, 0.9, 3)


def test_text_completions_get_the_bare_text() -> None:
    script = Script()
    [record] = run(script, job("once upon a time"), form="completions").records
    assert script.requests[0]["prompt"] == "once upon a time"
    assert (record.num_tokens, record.text) == (6, "t5 t6 t7 t8 t9 t2 ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("500", "HTTP 500: out of memory"),
        ("die", "the connection broke"),
        ("half", "the stream ended before the answer did"),
        ("error", "the server said: the worker died"),
    ],
)
def test_a_failed_request_is_a_record_with_its_reason(text: str, error: str) -> None:
    good, bad = run(Script(), job(), job(text, 1)).records
    assert not good.failed
    assert error in (bad.error or "")


def test_a_share_of_failures_leaves_the_others_alone() -> None:
    jobs = [job("500" if index % 4 == 0 else "hi", index) for index in range(12)]
    records = run(Script(), *jobs, concurrency=4).records
    assert [record.failed for record in records] == [index % 4 == 0 for index in range(12)]
    assert all(record.num_tokens == 6 for record in records if not record.failed)


def test_a_server_that_dies_in_the_middle_fails_the_rest_and_ends() -> None:
    script = Script()
    with serving(script):
        found = EndpointRunner("server", None, None, Endpoint(script.url))
        assert not found.run([job()], 1).records[0].failed
    block = found.run([job(index=n) for n in range(3)], 1)
    found.close()
    assert all(record.failed for record in block.records)
    assert "the connection broke" in (block.records[0].error or "")
    assert (block.stats, block.duration_s) == (None, 0.0)


def test_a_stream_without_usage_has_no_length_and_no_tpot() -> None:
    block = run(Script(), job("mute"))
    assert (block.records[0].num_tokens, block.records[0].tpot_s, block.records[0].failed) == (None, None, False)
    assert any("no usage" in note and "--tokenizer" in note for note in block.notes)


def test_a_tokenizer_counts_where_usage_is_missing() -> None:
    block = run(Script(), job("mute"), tokenize=lambda text: [int(word[1:]) for word in text.split()])
    assert block.records[0].token_ids == [5, 6, 7, 8, 9, 2]
    assert any("counted with the tokenizer" in note for note in block.notes)


def test_many_in_flight_and_never_more_than_asked() -> None:
    records = run(Script(gaps_s=(0.01, 0.01, 0.01)), *[job(index=n) for n in range(9)], concurrency=3).records
    assert len(records) == 9
    ends = [record.last_token_s or 0.0 for record in records]
    in_flight = [
        sum(r.submitted_s <= now.submitted_s < end for r, end in zip(records, ends, strict=True)) for now in records
    ]
    assert max(in_flight) == 3


def test_a_key_is_sent_and_its_lack_is_explained() -> None:
    assert not run(Script(key="secret"), job(), api_key="secret").records[0].failed
    with pytest.raises(SpecctlError, match="refuses the key") as caught:
        run(Script(key="secret"), job())
    assert "OPENAI_API_KEY" in (caught.value.help or "")


def test_nobody_there() -> None:
    with pytest.raises(MissingError, match=r"nothing answers at http://127\.0\.0\.1:9"):
        EndpointRunner("server", None, None, Endpoint("http://127.0.0.1:9"))


def test_a_model_that_is_not_served_is_named() -> None:
    with pytest.raises(SpecctlError, match="does not serve other") as caught:
        run(Script(models=("a", "b")), job(), model="other")
    assert caught.value.help == "it serves a, b"


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("http://host:8000/v1", "http://host:8000"),
        ("http://host:8000/v1/chat/completions", "http://host:8000"),
        ("https://gate.example/team/v1/", "https://gate.example/team"),
        ("localhost:8000", "http://localhost:8000"),
    ],
)
def test_a_url_in_any_form(url: str, root: str) -> None:
    assert root_of(url, "--url") == root


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://host:notaport", "http://host:99999"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="--url is"):
        root_of(url, "--url")


def test_the_margin_comes_from_the_servers_logprobs() -> None:
    script = Script(logprobs=[(-0.1, -3.0), (-0.6, -0.7)])
    with runner(script) as found:
        [record] = found.run([job()], 1).records
        assert found.margin(record, 1) == pytest.approx(0.1)
        assert found.margin(record, 5) is None
    assert script.requests[1]["max_tokens"] == 2


def test_margins_of_text_completions_and_of_servers_that_say_nothing() -> None:
    told = {"choices": [{"logprobs": {"top_logprobs": [{"a": -1.0, "b": -1.25, "c": -4.0}]}}]}
    assert top_two(told, 0) == pytest.approx(0.25)
    for silent in ({}, {"choices": [{"logprobs": None}]}, {"choices": []}, "no"):
        assert top_two(silent, 0) is None


def test_connections_are_not_kept_longer_than_servers_keep_them() -> None:
    """uvicorn's own limit is 5 s (`timeout_keep_alive`); a longer one here loses requests in between two blocks."""
    assert uvicorn.Config("app:app").timeout_keep_alive > KEEPALIVE_S
