"""`specctl serve` as a process: its start, its end, its refusals."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.runtime.kit import build

START_S = 120
LONG = {"prompt": "hello", "max_tokens": 85, "ignore_eos": True, "temperature": 0, "stream": True}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("llama", tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def other() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "specctl", "serve", *map(str, arguments)]


def refused(*arguments: object, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit status and standard error of a command that must end by itself."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=START_S, env=environment)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


class Process:
    """A server process; `lines` collects what it prints."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            command("--port", 0, "--threads", 1, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._ready.wait(START_S), self.text
        self.url = re.findall(r"https?://[\d.:]+", self.text)[0]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("serving"):
                self._ready.set()
        self._ready.set()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the status."""
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def server(tiny: Path) -> Iterator[Process]:
    found = Process(tiny, "--served-model-name", "tiny")
    yield found
    found.process.kill()
    found.process.wait(10)


def test_start_serve_and_drain(server: Process) -> None:
    for word in (
        "float32 on cpu",
        "speculation  none",
        "16 requests",
        "96 tokens",
        "serving      tiny at http://127.0.0.1:",
    ):
        assert word in server.text
    ends: list[str] = []

    def stream() -> None:
        with httpx.stream("POST", server.url + "/v1/completions", json=LONG | {"n": 4}, timeout=60) as answer:
            ends.append([line for line in answer.iter_lines() if line][-1])

    # 48 choices for 16 slots: many wait when the signal comes.
    clients = [threading.Thread(target=stream) for _ in range(12)]
    for client in clients:
        client.start()
    limit = time.monotonic() + 60
    while _came_in(server) < 48:
        assert time.monotonic() < limit
        time.sleep(0.005)
    assert server.end() == 0
    for client in clients:
        client.join(20)
    assert set(ends) == {"data: [DONE]"}
    assert "draining" in server.text
    assert server.lines[-1] == "stopped\n"
    assert "Traceback" not in server.text


def _came_in(server: Process) -> float:
    """Requests that run, wait or have finished."""
    page = httpx.get(server.url + "/metrics", timeout=10).text
    names = r"^vllm:(?:num_requests_running|num_requests_waiting|request_success_total){.*} (.*)$"
    return sum(float(value) for value in re.findall(names, page, re.MULTILINE))


def test_ctrl_c_while_idle(server: Process) -> None:
    begun = time.monotonic()
    assert server.end(signal.SIGINT) == 0
    assert time.monotonic() - begun < 10
    assert "Traceback" not in server.text


def test_a_port_in_use_is_told_before_the_model_is_loaded(other: int) -> None:
    # A target that cannot be loaded: were it tried first, the message would be about it.
    status, told = refused("/nowhere/at/all", "--port", other)
    assert status == 3
    assert f"port {other} on 127.0.0.1 is in use" in told


def test_a_target_that_is_not_there() -> None:
    status, told = refused("/nowhere/at/all", "--port", 0)
    assert status == 3
    assert "/nowhere/at/all" in told


def test_a_host_that_is_no_host() -> None:
    status, told = refused("--host", "no.such.host.invalid")
    assert status == 3
    assert "no.such.host.invalid" in told


def test_an_engine_that_is_not_served() -> None:
    status, told = refused("--engine", "llama.cpp")
    assert status == 2
    assert "'llama.cpp'; it must be torch or vllm or sglang or trtllm" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ["--per-request-spec-decode-metrics", "all"],
        ["--log-level", "loud"],
        ["--speculation", "sometimes"],
        ["--max-num-seqs", "0"],
        ["--port", "70000"],
        ["--no-such-option"],
        ["--api-key", ""],
        [
            "-sc",
            '{"method":"ngram","num_speculative_tokens":3}',
            "-sc",
            '{"method":"ngram","num_speculative_tokens":4}',
        ],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert refused(*arguments)[0] == 2


def test_key_files(tmp_path: Path) -> None:
    assert refused("--api-key-file", tmp_path / "none")[0] == 3
    (tmp_path / "empty").write_text("# no key\n\n", "utf-8")
    assert refused("--api-key-file", tmp_path / "empty")[0] == 2
    assert refused(env={"SPECCTL_API_KEY": " "})[0] == 2


def test_a_context_longer_than_the_model(tiny: Path) -> None:
    status, told = refused(tiny, "--port", 0, "--max-model-len", 97)
    assert status == 1
    assert "97" in told
    assert "96" in told


@pytest.mark.parametrize(
    "setting",
    [
        ["-sc", '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4}'],
        ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", 5],
    ],
    ids=["vllm", "sglang"],
)
def test_a_setting_in_the_words_of_an_engine(tiny: Path, setting: list[object]) -> None:
    server = Process(*setting, tiny, "--served-model-name", "tiny")
    try:
        assert "speculation  ngram, k = 4" in server.text
        body = {"prompt": "abababababab", "max_tokens": 60, "ignore_eos": True, "temperature": 0}
        assert httpx.post(server.url + "/v1/completions", json=body, timeout=60).status_code == 200
        page = httpx.get(server.url + "/metrics", timeout=10).text
        assert re.search(r"^vllm:spec_decode_num_drafts_total{.*} [1-9]", page, re.MULTILINE)
        assert server.end() == 0
    finally:
        server.process.kill()
        server.process.wait(10)


def test_a_setting_with_an_error_stops_before_anything_else(other: int) -> None:
    status, told = refused(
        "/nowhere/at/all", "--port", other, "-sc", '{"method": "ngram", "num_speculative_tokens": 0}'
    )
    assert status == 1
    assert "error[SPC" in told
    assert "num_speculative_tokens" in told


def test_keys_come_from_all_three_places(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCTL_API_KEY", "from-env")
    (tmp_path / "keys").write_text("# two of them\nfrom-file\n\nalso-from-file\n", "utf-8")
    server = Process(tiny, "--api-key", "from-option", "--api-key-file", tmp_path / "keys")
    try:
        wanted = {"from-env": 200, "from-file": 200, "also-from-file": 200, "from-option": 200, "other": 401}
        for key, status in wanted.items():
            answer = httpx.get(server.url + "/v1/models", headers={"Authorization": f"Bearer {key}"}, timeout=10)
            assert answer.status_code == status
        assert "from-" not in server.text
    finally:
        server.process.kill()
        server.process.wait(10)


def test_https(tiny: Path) -> None:
    # Of 127.0.0.1, signed by itself, made for this test alone and good for a hundred years.
    certificate, key = (Path(__file__).with_name(f"localhost-{part}.pem") for part in ("cert", "key"))
    server = Process(tiny, "--ssl-certfile", certificate, "--ssl-keyfile", key)
    try:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(server.url + "/health", verify=trusted, timeout=10).status_code == 200
    finally:
        server.process.kill()
        server.process.wait(10)


def test_certificates_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate", "utf-8")
    assert refused("--ssl-certfile", tmp_path / "text", "--ssl-keyfile", tmp_path / "text")[0] == 3
    assert refused("--ssl-certfile", tmp_path / "none", "--ssl-keyfile", tmp_path / "none")[0] == 3
    assert refused("--ssl-keyfile", tmp_path / "text")[0] == 2
