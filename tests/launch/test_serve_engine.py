"""`specctl serve --engine`: from the setting to the engine's own exit status."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

NGRAM = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "5")
DRAFT = ("--speculative-config", '{"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}')


def metrics_of(drafts: int, drafted: int, accepted: int) -> str:
    return "".join(
        f"# TYPE vllm:spec_decode_num_{name} counter\nvllm:spec_decode_num_{name}_total {value}\n"
        for name, value in (("drafts", drafts), ("draft_tokens", drafted), ("accepted_tokens", accepted))
    )


METRICS = metrics_of(10, 40, 20)


def serve(*words: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "specctl", "serve", "demo", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ) | env,
    )  # fmt: skip


def ended(*words: str, **env: str) -> tuple[int, str, str]:
    process = serve(*words, **env)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def started(
    program: Path,
    port: int,
    tmp_path: Path,
    *more: str,
    setting: tuple[str, ...] = NGRAM,
    page: str = METRICS,
    **env: str,
) -> subprocess.Popen[str]:
    """A run whose engine is healthy."""
    metrics = tmp_path / "metrics.txt"
    metrics.write_text(page, "utf-8")
    words = ("--engine", "vllm", "--engine-command", str(program), "--port", str(port), "--metrics-interval", "0.2")
    process = serve(*words, *setting, *more, STAND_IN_METRICS=str(metrics), **env)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("healthy"):
            return process
    raise AssertionError(process.communicate()[1])


def test_sglang_spelling_starts_vllm_and_its_acceptance_is_told(program: Path, port: int, tmp_path: Path) -> None:
    process = started(program, port, tmp_path, "--", "--enforce-eager")
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("speculation"))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert "acceptance rate 0.500, mean acceptance length 3.00" in line
    assert '"method": "ngram", "num_speculative_tokens": 4' in err
    assert "--enforce-eager" in err
    assert "stand-in: ends" in err
    assert "vLLM ended with status 0" in out
    assert process.returncode == 0


def test_an_engine_whose_draft_is_never_accepted_raises_the_alarm(program: Path, port: int, tmp_path: Path) -> None:
    process = started(program, port, tmp_path, setting=DRAFT, page=metrics_of(200, 800, 3))
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("ALARM"))
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert "draft_model looks broken: of 200 drafts, 3 had their first token accepted (1.5 %" in line
    assert "ALARM" not in out  # once


def test_the_engines_own_status_is_passed_on(program: Path, port: int, tmp_path: Path) -> None:
    process = started(program, port, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 5


def test_a_second_signal_ends_it_at_once(program: Path, port: int, tmp_path: Path) -> None:
    process = started(program, port, tmp_path, STAND_IN_FAILS="stays")
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 137


def test_an_engine_that_dies_later(program: Path, port: int, tmp_path: Path) -> None:
    process = started(program, port, tmp_path, STAND_IN_FAILS="later")
    out, err = process.communicate(timeout=30)
    assert process.returncode == 9
    assert "vLLM ended with status 9" in out
    assert "worker 0 died" in err


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("port", 7, "its port is in use"),
        ("refused", 7, "it refused its settings"),
        ("memory", 7, "it ran out of memory"),
        ("dies", 7, "it ended while loading"),
        ("killed", 137, "the system killed it"),
    ],
)
def test_a_failed_start_is_explained(kind: str, status: int, reason: str, program: Path, port: int) -> None:
    words = ("--engine", "vllm", "--engine-command", str(program), "--port", str(port))
    code, out, err = ended(*words, *NGRAM, STAND_IN_FAILS=kind)
    assert (code, "healthy" in out) == (status, False)
    assert f"vLLM did not start: {reason} (exit status {status})" in err
    if kind == "refused":
        assert "num_speculative_tokens must be divisible" in err.split("vLLM says:")[1]
    if kind == "dies":
        assert "layers.3.mlp is missing" in err.split("vLLM says:")[1]


def test_an_engine_that_is_never_healthy_is_ended(program: Path, port: int) -> None:
    words = ("--engine", "vllm", "--engine-command", str(program), "--port", str(port), "--start-timeout", "1.5")
    code, _, err = ended(*words, STAND_IN_FAILS="never", STAND_IN_METRICS=os.devnull)
    assert code == 1
    assert "was not healthy within 1.5 s" in err
    with socket.socket() as sock:
        assert sock.connect_ex(("127.0.0.1", port)) != 0


def test_a_port_in_use_is_seen_before_the_start(program: Path) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        words = ("--engine", "vllm", "--engine-command", str(program), "--port", str(sock.getsockname()[1]))
        code, _, err = ended(*words)
    assert code == 3
    assert "is in use by another process" in err
    assert "stand-in" not in err


def test_a_setting_that_the_engine_refuses_is_refused_before_the_start(program: Path, port: int) -> None:
    words = ("--engine", "vllm", "--engine-command", str(program), "--port", str(port))
    code, out, err = ended(*words, "--speculative-config", '{"method": "ngram"}')
    assert code == 1
    assert "num_speculative_tokens" in err
    assert "stand-in" not in out + err


def test_parallelism_behind_the_dashes_counts(program: Path) -> None:
    setting = '{"method":"draft_model","model":"demo-draft","num_speculative_tokens":4,"draft_tensor_parallel_size":%d}'
    words = ("--engine", "vllm", "--engine-command", str(program), "--dry-run")
    ranks = [ended(*words, "-sc", setting % each, "--", "--tensor-parallel-size", "2")[0] for each in (2, 3)]
    assert ranks == [0, 1]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--dry-run",), "--dry-run is for vLLM, SGLang and TensorRT-LLM"),
        (("--engine", "vllm", "--port", "0", "--dry-run"), "name the port"),
        (("--engine", "nonsense"), "'nonsense'"),
        (("--engine", "vllm", "--dry-run", "--release", "x"), "no release number"),
        (("--engine", "sglang", "--dry-run", "--threads", "2"), "--threads is an option of the bundled runtime"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], wanted: str) -> None:
    code, _, err = ended(*words)
    assert code == 2
    assert wanted in err


def test_a_missing_engine_is_named() -> None:
    code, _, err = ended("--engine", "trtllm", PATH="/nowhere")
    assert code == 3
    assert "trtllm-serve is not on PATH" in err


def test_a_dry_run_needs_no_engine_and_names_the_release() -> None:
    code, out, err = ended("--engine", "trtllm", "--release", "1.4.0rc0", "--dry-run", *NGRAM, PATH="/nowhere")
    assert code == 0
    assert "decoding_type: NGram" in out
    assert out.splitlines()[-1].startswith("trtllm-serve ")
    assert "release 1.4.0rc0" in err
