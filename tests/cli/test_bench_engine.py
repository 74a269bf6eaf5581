"""`specctl bench --engine`: a program is started plainly and with each candidate, measured, stopped, reported."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from specctl.bench.endpoint import EndpointRunner
from specctl.bench.records import Block, Job
from specctl.cli.main import run

ROOT = Path(__file__).parents[2]
# Serves like an engine until it is told to end.
PROGRAM = f"""#!{sys.executable}
import signal, sys, time
sys.path.insert(0, {str(ROOT)!r})
from aiohttp import web
from tests.bench.scripted_server import Script, Server
print("stand-in:", *sys.argv[1:], flush=True)
app = Server(Script(models=("demo",))).app()
async def health(request):
    return web.Response()
app.router.add_get("/health", health)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[sys.argv.index("--port") + 1]), print=None)
"""
NGRAM = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}']


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "vllm"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return str(path)


def test_baseline_and_candidate_are_started_one_after_the_other(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, log = tmp_path / "out.json", tmp_path / "engine.log"
    words = ["bench", "demo", "--engine", "vllm", "--engine-command", program, "--engine-log", str(log), *NGRAM]
    quick = ["--num-prompts", "4", "--repeats", "1", "--warmup", "0", "--concurrency", "2"]
    assert run([*words, *quick, "--output-json", str(out), "--", "--enforce-eager"]) == 0
    report = json.loads(out.read_text())
    assert [(each["name"], each["k"], each["requests"]) for each in report["runs"]] == [
        ("baseline", None, 4),
        ("ngram", 4, 4),
    ]
    assert (report["comparison"][0]["pairs"], report["comparison"][0]["outputs"]) == (4, "identical")
    said = capsys.readouterr().err
    starts = [line for line in said.splitlines() if line.startswith("starting")]
    assert "[0/8 requests]" in said
    assert ["--speculative-config" in line for line in starts] == [False, True]
    assert all(line.endswith("--enforce-eager") for line in starts)
    assert log.read_text().count("stand-in:") == 2


def test_an_engine_that_is_not_here_and_one_too_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "demo", "--engine", "vllm", "--engine-command", str(tmp_path / "none"), *NGRAM]) == 3
    assert run(["bench", "demo", "--engine", "llama", *NGRAM]) == 2
    assert "--engine is 'llama'" in capsys.readouterr().err
    assert run(["bench", "--engine", "vllm", "--url", "localhost:1", *NGRAM]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert run(["bench", "--engine-command", "vllm"]) == 2


def test_a_stopped_run_of_engines_goes_on(tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["bench", "demo", "--engine", "vllm", "--engine-command", program, "--engine-log", str(tmp_path / "log")]
    quick = ["--num-prompts", "4", "--repeats", "1", "--warmup", "0", "--concurrency", "2", *NGRAM]
    resumed = [*words, *quick, "--resume", str(tmp_path / "journal"), "--output-json", str(tmp_path / "out.json")]
    asked: list[str] = []
    send = EndpointRunner.run

    def stopped(self: EndpointRunner, jobs: Sequence[Job], concurrency: int, /) -> Block:
        if self.name == "ngram" and "stop" not in asked:
            asked.append("stop")
            raise KeyboardInterrupt
        asked.append(self.name)
        return send(self, jobs, concurrency)

    monkeypatch.setattr(EndpointRunner, "run", stopped)
    assert run(resumed) == 130
    assert run(resumed) == 0
    assert asked == ["baseline", "stop", "ngram"]
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["comparison"][0]["pairs"] == 4
