"""Connections: what HTTP/1 allows is answered, and nobody is waited for without end."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.fake_engine import FakeEngine, FakeTarget
from tests.server.live import Live, live

BODY = b'{"prompt": "hello", "max_tokens": 3, "temperature": 0}'
# Eight megabytes of answer: more than the buffers of both sides hold.
LARGE = {"prompt": "x" * 50_000, "n": 32, "max_tokens": 3, "echo": True, "return_token_ids": True, "stream": True}
WAIT_S = 20.0


@pytest.fixture(scope="module")
def hasty() -> Iterator[Live]:
    """A server that waits a quarter of a second for a head, and half a second for a client to read."""
    with live(FakeEngine(k=3), FakeTarget(), max_model_len=200_000, head_timeout_s=0.25, read_timeout_s=0.5) as found:
        yield found


def connect(server: Live, receive_buffer: int | None = None) -> socket.socket:
    address = urlsplit(server.url)
    found = socket.socket()
    if receive_buffer is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    found.settimeout(WAIT_S)
    found.connect((address.hostname, address.port))
    return found


def post(body: bytes, more: str = "", version: str = "1.1") -> bytes:
    head = f"POST /v1/completions HTTP/{version}\r\nHost: x\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def read_all(sock: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def send_slowly(sock: socket.socket) -> None:
    """A head in small pieces, more often than every quarter of a second and for longer than that."""
    sock.sendall(b"GET /health HTTP/1.1\r\n")
    for _ in range(2000):
        sock.sendall(b"a: b\r\n")
        time.sleep(0.01)


def test_http_1_0_is_answered_and_closed(fake: Live) -> None:
    with connect(fake) as sock:
        sock.sendall(post(BODY, version="1.0"))
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert json.loads(body)["usage"]["completion_tokens"] == 3


def test_pipelined_calls_are_answered_in_order(fake: Live) -> None:
    with connect(fake) as sock:
        calls = [post(BODY), post(b"{"), post(BODY.replace(b"3", b"2"), "Connection: close\r\n")]
        sock.sendall(b"".join(calls))
        found = read_all(sock)
    assert [part[:3] for part in found.split(b"HTTP/1.1 ")[1:]] == [b"200", b"400", b"200"]
    assert found.index(b'"completion_tokens":3') < found.index(b'"completion_tokens":2')


def test_hanging_up_with_a_call_in_the_pipe_is_seen() -> None:
    with live(FakeEngine(step_s=0.02), FakeTarget()) as server:
        with connect(server) as sock:
            sock.sendall(post(b'{"prompt": "hello", "max_tokens": 500, "ignore_eos": true}'))
            wait_until(lambda: server.bridge.inside == 1)
            sock.sendall(post(BODY))
            time.sleep(0.1)
        wait_until(lambda: server.bridge.inside == 0)
        assert len(server.engine.aborted) == 1
        assert server.counters()["vllm:request_success_total[finished_reason=abort]"] == 1


def test_a_body_in_chunks(fake: Live) -> None:
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with connect(fake) as sock:
        sock.sendall(head + pieces + b"0\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 200")


def test_a_compressed_body_is_refused_by_its_encoding(fake: Live) -> None:
    answer = fake.post("/v1/completions", content=BODY, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert "'gzip'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHo"])
def test_a_request_that_never_comes_ends_the_connection(hasty: Live, begun: bytes) -> None:
    with connect(hasty) as sock:
        sock.sendall(begun)
        assert read_all(sock) == b""


def test_a_head_in_small_pieces_does_not_hold_the_connection(hasty: Live) -> None:
    with connect(hasty) as sock, pytest.raises((BrokenPipeError, ConnectionResetError)):
        send_slowly(sock)


def test_a_client_that_does_not_read_is_cut_off(hasty: Live) -> None:
    connections = hasty.server.server_state.connections
    with connect(hasty, receive_buffer=4096) as sock:
        sock.sendall(post(json.dumps(LARGE).encode()))
        assert sock.recv(9) == b"HTTP/1.1 "
        wait_until(lambda: not connections and not hasty.bridge.inside)


def test_an_answer_may_take_longer_than_a_head(hasty: Live) -> None:
    hasty.engine.step_s = 0.1
    try:
        answer = hasty.post("/v1/completions", content=b'{"prompt": "hello", "max_tokens": 30}')
    finally:
        hasty.engine.step_s = 0.0
    assert answer.json()["usage"]["completion_tokens"] == 30


def test_nonsense_behind_a_refused_call_ends_the_connection(fake: Live) -> None:
    with connect(fake) as sock:
        sock.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 404")
        sock.sendall(b"no chunk\r\n")
        with contextlib.suppress(ConnectionResetError):
            read_all(sock)  # to its end, which comes before the time is over


def test_web_pages_stay_out_unless_their_origin_is_named(fake: Live) -> None:
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    asked |= {"Access-Control-Request-Headers": "authorization,content-type"}
    assert "access-control-allow-origin" not in httpx.options(f"{fake.url}/v1/completions", headers=asked).headers
    with live(FakeEngine(), FakeTarget(), api_keys=("k",), allowed_origins=("https://page.example",)) as server:
        first = httpx.options(f"{server.url}/v1/completions", headers=asked)
        assert first.status_code == 200
        assert first.headers["access-control-allow-origin"] == "https://page.example"
        headers = {"Origin": "https://page.example", "Authorization": "Bearer k"}
        answer = server.post("/v1/completions", content=BODY, headers=headers)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        other = server.get("/v1/models", headers=headers | {"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers
        assert server.post("/v1/completions", content=BODY).status_code == 401


def test_idle_connections_outlive_those_of_clients_and_proxies(fake: Live) -> None:
    """Or a call meets a connection that is just being closed: httpx keeps one for 5 s, aiohttp 15, proxies 60."""
    assert fake.server.config.timeout_keep_alive > 60
