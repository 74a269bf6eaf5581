"""Hang-ups, full queues, faults and the end of the server."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from tests.server.fake_engine import FakeEngine, FakeTarget, answer_text
from tests.server.live import live
from tests.server.test_refusals import error_of

SLOW = {"model": "fake", "prompt": "hi", "temperature": 0, "max_tokens": 400, "ignore_eos": True}


def until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@pytest.mark.parametrize("stream", [True, False])
def test_a_disconnect_frees_the_slot_within_a_step(stream: bool) -> None:
    engine = FakeEngine(max_num_seqs=1, step_s=0.05)
    with live(engine, FakeTarget(), max_num_seqs=1) as server, httpx.Client(timeout=10) as client:
        body = SLOW | {"stream": stream}
        if stream:
            with client.stream("POST", server.url + "/v1/completions", json=body) as answer:
                next(answer.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(server.url + "/v1/completions", json=body, timeout=0.4)
        gone = time.monotonic()
        until(lambda: not engine.running, 1.0)
        assert time.monotonic() - gone < 0.5
        until(lambda: server.bridge.inside == 0)
        assert len(engine.aborted) == 1
        after = server.client().completions.create(model="fake", prompt="next", temperature=0, max_tokens=5)
        assert after.usage is not None
        counters = server.counters()
        assert counters["vllm:request_success_total[finished_reason=abort]"] == 1
        assert counters["vllm:num_requests_running"] == 0


def test_a_disconnect_while_waiting() -> None:
    engine = FakeEngine(max_num_seqs=1, step_s=0.02)
    with live(engine, FakeTarget(), max_num_seqs=1) as server, ThreadPoolExecutor() as pool:
        running = pool.submit(server.post, "/v1/completions", json=SLOW | {"max_tokens": 60})
        until(lambda: bool(engine.running))
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + "/v1/completions", json=SLOW | {"stream": True}, timeout=0.2)
        until(lambda: server.bridge.inside == 1)
        assert running.result(10).status_code == 200


def test_a_full_queue_answers_429() -> None:
    engine = FakeEngine(max_num_seqs=1, step_s=0.02)
    with live(engine, FakeTarget(), max_num_seqs=1, max_queue=2) as server, ThreadPoolExecutor() as pool:
        inside = [pool.submit(server.post, "/v1/completions", json=SLOW | {"max_tokens": 40}) for _ in range(3)]
        until(lambda: server.bridge.inside == 3)
        assert server.counters()["vllm:num_requests_waiting"] == 2
        with pytest.raises(openai.RateLimitError) as caught:
            server.client().completions.create(model="fake", prompt="hi")
        assert int(caught.value.response.headers["retry-after"]) >= 1
        assert caught.value.code == "queue_full"
        assert [f.result(20).status_code for f in inside] == [200, 200, 200]
        assert server.post("/v1/completions", json=SLOW | {"max_tokens": 5}).status_code == 200
        # All choices of a call come in together or not at all; what can never come in is no matter of waiting.
        assert error_of(server.post("/v1/completions", json=SLOW | {"n": 4}))["param"] == "n"
        assert server.counters()["specctl:requests_refused_total[status=429]"] == 1


@pytest.mark.parametrize("word", ["BUG", "FAIL"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_hurts_its_own_request_only(word: str, stream: bool) -> None:
    with live(FakeEngine(step_s=0.01), FakeTarget()) as server, ThreadPoolExecutor() as pool:
        others = [pool.submit(server.post, "/v1/completions", json=SLOW | {"max_tokens": 30}) for _ in range(3)]
        bad = server.post("/v1/completions", json=SLOW | {"prompt": word, "stream": stream})
        assert "secret" not in bad.text
        if stream and word == "FAIL":  # it fails after its first tokens were sent
            assert bad.status_code == 200
            assert '"error"' in bad.text
            assert bad.text.endswith("data: [DONE]\n\n")
        else:
            error_of(bad, 500)
        assert [f.result(20).status_code for f in others] == [200] * 3
        assert server.get("/health").status_code == 200
        assert server.counters()["vllm:request_success_total[finished_reason=error]"] == 1


def test_a_failing_choice_ends_its_call() -> None:
    engine = FakeEngine(step_s=0.01)
    with live(engine, FakeTarget()) as server:
        error_of(server.post("/v1/completions", json=SLOW | {"prompt": ["FAIL", "fine"]}), 500)
        until(lambda: server.bridge.inside == 0)
        assert not engine.running


def test_a_stream_that_fails_raises_in_the_client() -> None:
    with live(FakeEngine(), FakeTarget()) as server:
        stream = server.client().completions.create(model="fake", prompt="FAIL", stream=True)
        with pytest.raises(openai.APIError):
            list(stream)


def test_a_dead_engine_is_said_and_nothing_hangs() -> None:
    with live(FakeEngine(step_s=0.02), FakeTarget()) as server, ThreadPoolExecutor() as pool:
        others = [pool.submit(server.post, "/v1/completions", json=SLOW) for _ in range(3)]
        until(lambda: server.bridge.inside == 3)
        assert error_of(server.post("/v1/completions", json=SLOW | {"prompt": "DIE"}), 500)["code"] == "engine_dead"
        for other in others:
            error_of(other.result(10), 500)
        error_of(server.post("/v1/completions", json=SLOW), 500)
        assert server.get("/health").status_code == 503
        assert server.get("/metrics").status_code == 200
        assert server.bridge.inside == 0


def test_draining_finishes_what_runs() -> None:
    with live(FakeEngine(step_s=0.02), FakeTarget()) as server, ThreadPoolExecutor(8) as pool:
        inside = [
            pool.submit(server.post, "/v1/completions", json=SLOW | {"max_tokens": 50, "stream": s})
            for s in (True, False)
        ]
        until(lambda: server.bridge.inside == 2)
        server.end()
        until(lambda: server.bridge.is_draining)
        error = error_of(server.post("/v1/completions", json=SLOW), 503)
        assert error["code"] == "draining"
        assert server.get("/health").status_code == 503
        streamed, whole = (f.result(10) for f in inside)
        assert streamed.text.endswith("data: [DONE]\n\n")
        assert '"length"' in streamed.text
        assert whole.json()["usage"]["completion_tokens"] == 50
        server.thread.join(10)
        assert not server.thread.is_alive()


def test_a_drain_has_an_end() -> None:
    with live(FakeEngine(step_s=0.05), FakeTarget(), drain_timeout_s=0.3) as server, ThreadPoolExecutor(8) as pool:
        inside = [pool.submit(server.post, "/v1/completions", json=SLOW | {"stream": s}) for s in (True, False)]
        until(lambda: len(server.engine.running) == 2)
        time.sleep(0.1)
        begun = time.monotonic()
        server.end()
        streamed, whole = (f.result(10) for f in inside)
        assert '"draining"' in streamed.text
        error_of(whole, 503)
        server.thread.join(10)
        assert time.monotonic() - begun < 5


def test_a_second_signal_stops_at_once() -> None:
    with live(FakeEngine(step_s=0.05), FakeTarget(), drain_timeout_s=60) as server, ThreadPoolExecutor(8) as pool:
        inside = pool.submit(server.post, "/v1/completions", json=SLOW)
        until(lambda: bool(server.engine.running))
        begun = time.monotonic()
        server.end()
        server.end()
        server.thread.join(10)
        assert not server.thread.is_alive()
        assert time.monotonic() - begun < 3
        error_of(inside.result(10), 503)


def test_clients_that_come_and_go() -> None:
    """A third hang up, a tenth send rubbish: the rest get their own answers, and nothing is left inside."""
    engine = FakeEngine(k=3, max_num_seqs=8, step_s=0.001)

    async def one(client: httpx.AsyncClient, number: int) -> bool:
        prompt = f"client {number}"
        if number % 10 == 0:
            return (await client.post("/v1/completions", content=b"{rubbish")).status_code == 400
        body = SLOW | {"prompt": prompt, "ignore_eos": number % 3 == 0, "stream": number % 2 == 0 or number % 3 == 0}
        if number % 3 == 0:
            async with client.stream("POST", "/v1/completions", json=body) as answer:
                await anext(answer.aiter_lines())
            return True
        answer = await client.post("/v1/completions", json=body)
        return answer.status_code == 200 and _text(answer) == answer_text(prompt, None)

    async def everybody(url: str) -> list[bool]:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits) as client:
            return await asyncio.gather(*(one(client, number) for number in range(300)))

    with live(engine, FakeTarget(), max_num_seqs=8, max_queue=400) as server:
        outcome = asyncio.run(everybody(server.url))
        until(lambda: server.bridge.inside == 0)
        assert not engine.running
        assert not engine.waiting
        assert threading.active_count() < 20
    assert all(outcome)


def _text(answer: httpx.Response) -> str:
    if answer.headers["content-type"] == "application/json":
        return str(answer.json()["choices"][0]["text"])
    lines = [line[6:] for line in answer.text.split("\n\n") if line]
    return "".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1])
