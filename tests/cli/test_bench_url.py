"""`specctl bench --url` and what becomes of its report: faults, Ctrl-C, gates, compare, report."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specctl.bench.endpoint import EndpointRunner
from specctl.bench.records import Block, Job
from specctl.cli.main import run
from tests.bench.scripted_server import Script, serving

QUICK = ["--repeats", "1", "--warmup", "0", "--concurrency", "1,2", "-q"]
SETTING = ["--spec-method", "ngram", "--spec-tokens", "4", "--speculative-config.prompt_lookup_max", "4"]


@pytest.fixture
def prompts(tmp_path: Path) -> Callable[..., str]:
    def write(*texts: str) -> str:
        path = tmp_path / "prompts.jsonl"
        path.write_text("\n".join(json.dumps({"prompt": text, "category": "chat"}) for text in texts))
        return str(path)

    return write


def bench(tmp_path: Path, prompts: str, script: Script, *more: str) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "out.json"
    with serving(script):
        status = run(["bench", "--url", script.url, "--prompts", prompts, *QUICK, "--output-json", str(file), *more])
    return status, json.loads(file.read_text())


def test_one_server_is_measured_without_a_verdict(
    tmp_path: Path, prompts: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = bench(tmp_path, prompts("a", "b"), Script(), *SETTING)
    assert status == 0
    assert [(each["name"], each["k"], each["concurrency"]) for each in report["runs"]] == [
        ("ngram", 4, 1),
        ("ngram", 4, 2),
    ]
    assert report["runs"][0]["output_tokens"] == 12
    assert report["runs"][0]["input_tokens"] == 22
    assert (report["comparison"], report["verdict"]["keep_up_to_concurrency"]) == ([], None)
    assert report["runs"][0]["num_drafts"] is None
    assert "no verdict" in capsys.readouterr().out


def test_two_servers_are_compared_in_turns(tmp_path: Path, prompts: Callable[..., str]) -> None:
    file = tmp_path / "out.json"
    with serving(Script()) as one, serving(Script()) as other:
        words = [
            "bench",
            "--url",
            other.url,
            "--baseline-url",
            one.url,
            "--prompts",
            prompts(*"abcd"),
            *QUICK,
            *SETTING,
        ]
        assert run([*words, "--output-json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert [row["outputs"] for row in report["comparison"]] == ["identical", "identical"]
    assert [row["pairs"] for row in report["comparison"]] == [4, 4]
    assert [each["run"] for each in report["environment"]["servers"]] == ["baseline", "ngram"]


def test_outputs_of_servers_that_differ_fail_the_run(
    prompts: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "--prompts", prompts("a", "b"), *QUICK, *SETTING]
    plain = Script(logprobs=[(-0.1, -3.0)] * 9)
    with serving(plain) as one, serving(Script(chunks=((5,), (6, 7, 3), (9, 2)))) as other:
        assert run([*words, "--url", other.url, "--baseline-url", one.url]) == 1
    assert "different (2 real of 2 outputs)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("500", "HTTP 500: out of memory"),
        ("die", "the connection broke"),
        ("half", "the stream ended before the answer did"),
        ("error", "the server said: the worker died"),
    ],
)
def test_faults_are_told_for_each_request_and_count_as_failures(
    tmp_path: Path, prompts: Callable[..., str], text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = bench(tmp_path, prompts("a", text, "b", "c"), Script())
    assert status == 1
    assert [(each["requests"], each["failed"]) for each in report["runs"]] == [(3, 1), (3, 1)]
    assert [failure["request"] for failure in report["failures"]] == ["line-2", "line-2"]
    assert reason in report["failures"][0]["error"]
    assert report["runs"][0]["output_tokens"] == 18
    assert f"request line-2 failed in server at concurrency 1: {reason}" in capsys.readouterr().err


def test_a_stream_without_usage_has_unknown_times_not_zero(tmp_path: Path, prompts: Callable[..., str]) -> None:
    status, report = bench(tmp_path, prompts("mute", "mute"), Script())
    assert status == 0
    first = report["runs"][0]
    assert (first["output_tokens"], first["output_throughput"], first["tpot_ms"]["mean"]) == (None, None, None)
    assert first["ttft_ms"]["mean"] is not None
    assert any("no usage" in note for note in report["notes"])


def test_a_server_that_dies_leaves_a_valid_report(
    tmp_path: Path, prompts: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = EndpointRunner.run

    def run_into_nothing(self: EndpointRunner, jobs: list[Job], concurrency: int, /) -> Block:
        if concurrency == 2:
            monkeypatch.setattr(type(self.server.endpoint), "headers", {})
            object.__setattr__(self.server.endpoint, "url", "http://127.0.0.1:9")
        return honest(self, jobs, concurrency)

    monkeypatch.setattr(EndpointRunner, "run", run_into_nothing)
    status, report = bench(tmp_path, prompts("a", "b"), Script())
    assert status == 1
    assert [(each["requests"], each["failed"]) for each in report["runs"]] == [(2, 0), (0, 2)]
    assert report["runs"][1]["tpot_ms"] == {"mean": None, "median": None, "p99": None}
    assert "the connection broke" in report["failures"][0]["error"]


def test_ctrl_c_leaves_a_valid_partial_report(
    tmp_path: Path, prompts: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = EndpointRunner.run

    def stopped(self: EndpointRunner, jobs: list[Job], concurrency: int, /) -> Block:
        if concurrency == 2:
            raise KeyboardInterrupt
        return honest(self, jobs, concurrency)

    monkeypatch.setattr(EndpointRunner, "run", stopped)
    status, report = bench(tmp_path, prompts("a", "b"), Script())
    assert status == 130
    assert report["workload"]["interrupted"] is True
    assert [each["requests"] for each in report["runs"]] == [2, 0]
    assert run(["report", str(tmp_path / "out.json"), "--html", str(tmp_path / "r.html")]) == 0
    assert "Interrupted" in (tmp_path / "r.html").read_text()


def test_ctrl_c_in_the_middle_of_a_block_keeps_what_had_ended(tmp_path: Path, prompts: Callable[..., str]) -> None:
    def stop_at_the_third() -> None:
        if len(script.requests) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    script = Script(on_request=stop_at_the_third, gaps_s=(0.0, 0.01, 0.01))
    status, report = bench(tmp_path, prompts("a", "b", "c", "d"), script, "--concurrency", "1")
    assert status == 130
    [run_at_1] = report["runs"]
    assert (run_at_1["requests"], run_at_1["failed"], run_at_1["output_tokens"]) == (2, 0, 12)
    assert run_at_1["tpot_ms"]["mean"] is not None
    assert run_at_1["num_drafts"] is None
    assert any("requests in flight are left out" in note for note in report["notes"])


def test_compare_and_report_read_what_bench_wrote(
    tmp_path: Path, prompts: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(tmp_path, prompts("a", "b"), Script(gaps_s=(0.0, 0.002, 0.002)))
    one, other = tmp_path / "out.json", tmp_path / "other.json"
    report = json.loads(one.read_text())
    report["runs"][0]["tpot_ms"]["mean"] *= 2
    report["runs"][0]["tpot_ms_ci"] = [1e6, 2e6]
    other.write_text(json.dumps(report))
    capsys.readouterr()
    assert run(["compare", str(one), str(other)]) == 0
    printed = capsys.readouterr().out
    assert "server at concurrency 1: TPOT is worse" in printed
    assert run(["compare", str(one), str(other), "--format", "json"]) == 0
    [against] = json.loads(capsys.readouterr().out)["against"]
    assert [(each["measure"], each["ratio"], each["better"]) for each in against["changes"]] == [
        ("TPOT", pytest.approx(2.0), False)
    ]
    report["workload"]["temperature"] = 0.5
    other.write_text(json.dumps(report))
    assert run(["compare", str(one), str(other)]) == 1
    assert "measured other work: temperature 0.0 and 0.5" in capsys.readouterr().err
    assert run(["compare", str(one)]) == 2
    assert run(["report", str(one), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("name,k,concurrency")
    assert run(["report", str(tmp_path / "absent.json")]) == 3


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--baseline-url", "localhost:1"], 2, "--baseline-url is about a running server"),
        (["--url", "http://"], 2, "--url is 'http://'"),
        (["--url", "localhost:9"], 3, "nothing answers at http://localhost:9"),
        (["--url", "localhost:9", "--endpoint", "chats"], 2, "--endpoint is 'chats'"),
        (["--url", "localhost:9", "--extra-body", "{"], 2, "--extra-body is no JSON"),
        (["--burstiness", "2"], 2, "--burstiness is about --request-rate"),
        (["--random-tokens"], 2, "--random-tokens needs the lengths"),
        (["--format", "xml"], 2, "--format is 'xml'"),
        (["--goodput", "tpot:fast"], 2, "'tpot:fast' is no promise"),
        (["demo", "other"], 2, "one target is measured; 2 are named"),
        (["--min-acceptance-length", "0.2"], 2, "--min-acceptance-length is 0.2"),
        (["--baseline-json", "/nowhere.json"], 3, "cannot read /nowhere.json"),
        (["--request-rate", "0"], 2, "--request-rate is 0"),
        (["--url", "localhost:9", "--methods", "ngram"], 2, "--methods is of the bundled runtime"),
        (["--url", "localhost:9", "--k", "2"], 2, "--k is of the bundled runtime"),
        (["--url", "localhost:9", "--dtype", "float32"], 2, "--dtype is of the bundled runtime"),
        (["--url", "localhost:9", "--against", "transformers"], 2, "--against is of the bundled runtime"),
        (["--engine", "vllm", "--threads", "2"], 2, "--threads is of the bundled runtime"),
        (["--engine", "vllm", "--precision", "0.05"], 2, "--precision needs both sides in turns"),
        (["--endpoint", "completions"], 2, "--endpoint is about a running server"),
        (["--timeout", "9"], 2, "--timeout is about a running server"),
        (["--near-tie", "1"], 2, "--near-tie is about a running server"),
    ],
)
def test_wrong_use_is_told_before_anything_runs(
    words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", *words]) == status
    assert message in capsys.readouterr().err


def test_promises_may_stand_apart(tmp_path: Path, prompts: Callable[..., str]) -> None:
    status, report = bench(tmp_path, prompts("a", "b"), Script(), "--goodput", "tpot:1000", "ttft:5000")
    assert status == 0
    assert report["workload"]["goodput"] == {"tpot": 1000.0, "ttft": 5000.0}
    assert report["runs"][0]["goodput_share"] == 1.0


def test_conversations_are_asked_turn_by_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "questions.jsonl"
    rows = [{"question_id": 81, "category": "writing", "turns": ["one", "two"]}, {"prompt": "x"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    script = Script()
    status, report = bench(tmp_path, str(path), script)
    assert status == 0
    run_at_1 = report["runs"][0]
    assert (run_at_1["requests"], report["workload"]["requests"]) == (3, 3)
    assert {name: each["requests"] for name, each in run_at_1["by_turn"].items()} == {"1": 2, "2": 1}
    assert max(len(body["messages"]) for body in script.requests) == 3
    printed = capsys.readouterr().out
    assert "1 further turn" in printed
    assert "TTFT of server at concurrency 1 is" in printed
    status, report = bench(tmp_path, str(path), Script(), "--max-turns", "1")
    assert (status, report["workload"]["requests"], report["runs"][0]["by_turn"]) == (0, 2, {})
