"""/metrics and the figures in answers: vLLM's names, and numbers that agree with the engine's own."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from specctl.runtime.stats import SpecStats
from specctl.server.interval_log import IntervalLog, drafting_line
from specctl.server.metrics import ServerMetrics
from tests.server.fake_engine import FakeEngine, FakeTarget, answer_text
from tests.server.live import Live, live

SPEC = "vllm:spec_decode_num_"


def ask(server: Live, prompt: str, **more: Any) -> dict[str, Any]:
    body = {"model": "fake", "prompt": prompt, "temperature": 0, "max_tokens": 100}
    answer = server.post("/v1/completions", json=body | more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_counters_equal_the_engine_and_the_answers() -> None:
    with live(FakeEngine(k=3), FakeTarget(), per_request_metrics="summary") as server:
        answers = [ask(server, "x" * size) for size in range(1, 8)]
        each = [answer["metrics"]["speculative_decoding"] for answer in answers]
        counters, stats = server.counters(), server.engine.stats
    assert counters[f"{SPEC}drafts_total"] == stats.num_drafts == sum(m["num_spec_steps"] for m in each)
    assert counters[f"{SPEC}draft_tokens_total"] == stats.num_draft_tokens == sum(m["num_draft_tokens"] for m in each)
    accepted = sum(m["num_accepted_draft_tokens"] for m in each)
    assert counters[f"{SPEC}accepted_tokens_total"] == stats.num_accepted_tokens == accepted > 0
    per_position = [counters[f"{SPEC}accepted_tokens_per_pos_total[position={i}]"] for i in range(3)]
    assert per_position == stats.accepted_per_position
    assert sum(per_position) == accepted
    assert counters["vllm:prompt_tokens_total"] == sum(range(1, 8))
    assert counters["vllm:generation_tokens_total"] == sum(a["usage"]["completion_tokens"] for a in answers)
    assert counters["vllm:request_success_total[finished_reason=stop]"] == 7
    assert counters["vllm:request_success_total[finished_reason=length]"] == 0
    for name in ("time_to_first_token", "request_time_per_output_token", "e2e_request_latency"):
        assert counters[f"vllm:{name}_seconds_count"] == 7
    assert (counters["vllm:num_requests_running"], counters["vllm:num_requests_waiting"]) == (0, 0)
    assert counters["vllm:kv_cache_usage_perc"] == 0


def test_the_longest_answer_of_each_prompt_counts_once() -> None:
    with live(FakeEngine(k=3), FakeTarget()) as server:
        ask(server, "hello", n=3, max_tokens=7)
        server.post("/v1/completions", json={"prompt": ["a", "b"], "n": 2, "max_tokens": 5})
        counters = server.counters()
    assert counters["vllm:request_max_num_generation_tokens_count"] == 3
    assert counters["vllm:request_max_num_generation_tokens_sum"] == 7 + 5 + 5
    assert counters["vllm:request_generation_tokens_sum"] == 3 * 7 + 4 * 5


def test_what_boards_of_vllm_ask_for_is_there(fake: Live) -> None:
    """Metrics of vLLM's own boards (examples/observability) that hold for every server, beside those above."""
    counters = fake.counters()
    names = ("prompt_tokens_cached_total", "num_requests_waiting_by_reason[reason=capacity]", "num_preemptions_total")
    assert [counters[f"vllm:{name}"] for name in names] == [0, 0, 0]


def test_shape_of_the_figures_in_an_answer() -> None:
    with live(FakeEngine(k=3), FakeTarget(), per_request_metrics="summary") as server:
        found = ask(server, "hello")["metrics"]["speculative_decoding"]
        assert found["num_spec_tokens"] == 3
        assert len(found["acceptance_histogram"]) == 4
        assert sum(found["acceptance_histogram"]) == found["num_spec_steps"]
        assert found["mean_acceptance_length"] == 1 + found["num_accepted_draft_tokens"] / found["num_spec_steps"]
        assert found["draft_acceptance_rate"] == found["num_accepted_draft_tokens"] / found["num_draft_tokens"]
        assert "metrics" not in ask(server, "hello", n=2)
        one = ask(server, "hello", max_tokens=1)["metrics"]["speculative_decoding"]
        assert (one["num_spec_steps"], one["draft_acceptance_rate"]) == (0, 0.0)
        stream = server.client().completions.create(
            model="fake",
            prompt="hello",
            temperature=0,
            max_tokens=100,
            stream=True,
            stream_options={"include_usage": True},
        )
        last = list(stream)[-1]
        assert last.model_extra is not None
        assert last.model_extra["metrics"]["speculative_decoding"] == found


def test_each_draft_at_the_level_detailed() -> None:
    """The fake engine accepts 0, 1, 2, 3, 0, … of three drafted tokens."""
    with live(FakeEngine(k=3), FakeTarget(), per_request_metrics="detailed") as server:
        found = ask(server, "hello")["metrics"]["speculative_decoding"]
        assert found["per_step_accepted"][:6] == [0, 1, 2, 3, 0, 1]
        assert found["per_step_drafted"] == [3] * found["num_spec_steps"]
        assert sum(found["per_step_accepted"]) == found["num_accepted_draft_tokens"]
        counts = [found["per_step_accepted"].count(length) for length in range(4)]
        assert counts == found["acceptance_histogram"]
        without = ask(server, "hello", max_tokens=1)["metrics"]["speculative_decoding"]
        assert "per_step_accepted" not in without
        assert "per_step_drafted" not in without


def test_without_speculation_there_are_no_such_counters() -> None:
    with live(FakeEngine(), FakeTarget(), per_request_metrics="summary") as server:
        assert "metrics" not in ask(server, "hello")
        page = server.get("/metrics")
        assert "spec_decode" not in page.text
        assert page.headers["content-type"].startswith("text/plain")
        assert 'vllm:generation_tokens_total{engine="0",model_name="fake"}' in page.text


def test_counters_exist_before_the_first_request() -> None:
    with live(FakeEngine(k=2), FakeTarget()) as server:
        counters = server.counters()
        assert [counters[f"{SPEC}accepted_tokens_per_pos_total[position={i}]"] for i in range(2)] == [0, 0]
        assert counters[f"{SPEC}drafts_total"] == 0
        assert "metrics" not in ask(server, "hello")


def test_openmetrics_when_asked_for() -> None:
    with live(FakeEngine(k=2), FakeTarget()) as server:
        page = server.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        assert page.headers["content-type"].startswith("application/openmetrics-text")
        assert page.text.endswith("# EOF\n")


def test_the_log_line() -> None:
    window = SpecStats()
    for accepted in (0, 1, 2, 2):
        window.record(2, accepted)
    assert drafting_line(window, 2.0) == (
        "SpecDecoding metrics: Mean acceptance length: 2.25, Accepted throughput: 2.50 tokens/s, "
        "Drafted throughput: 4.00 tokens/s, Accepted: 5 tokens, Drafted: 8 tokens, "
        "Per-position acceptance rate: 0.750, 0.500, Avg Draft acceptance rate: 62.5%"
    )


def test_the_log_line_comes_only_while_something_is_drafted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "specctl.server")
    with live(FakeEngine(k=2), FakeTarget(), log_interval_s=3600) as server:
        line = IntervalLog(server.bridge, ServerMetrics("fake"))
        line.write()
        assert "SpecDecoding" not in caplog.text
        ask(server, "hello")
        for _ in range(3):
            line.write()
        assert caplog.text.count("SpecDecoding metrics") == 1


@pytest.mark.parametrize(("method", "accepted", "broken"), [("eagle3", 0, 1), ("eagle3", 600, 0), ("ngram", 0, 0)])
def test_a_draft_accepted_as_by_chance_is_told(
    method: str, accepted: int, broken: int, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine(k=2)
    engine.stats = SpecStats(2000, 2000, 4000, accepted, [accepted, 0], [2000 - accepted, accepted, 0])
    with live(engine, FakeTarget(), method=method, log_interval_s=0.05) as server:
        ask(server, "hello")
        time.sleep(0.2)
        ask(server, "hello")
        assert server.counters()["specctl:spec_decode_draft_broken"] == broken
    assert caplog.text.count("ALARM: eagle3 looks broken: of 2") == broken


def test_logs_have_ids_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "specctl.server")
    with live(FakeEngine(k=2), FakeTarget()) as server:
        server.post(
            "/v1/completions", json={"prompt": "secret words", "max_tokens": 3}, headers={"X-Request-Id": "mine"}
        )
        server.post("/v1/completions", json={"prompt": "secret words", "stop": 5})
        server.post("/v1/completions", json={"prompt": "secret words FAIL"})
    assert "secret words" not in caplog.text
    assert answer_text("secret words", None)[:8] not in caplog.text
    line = next(record.getMessage() for record in caplog.records if "request=mine" in record.getMessage())
    assert "status=200" in line
    assert "prompt_tokens=12 output_tokens=3 finish=length" in line
