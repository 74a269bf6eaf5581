"""Bodies, headers and paths that make no sense: a 4xx in the error shape each, no 5xx, no hang. Seeded."""

from __future__ import annotations

import asyncio
import random
import socket

import httpx

from benchmarks.nonsense import calls
from tests.server.live import Live

BODIES = 600
RAW_CONNECTIONS = 60


def test_nonsense_is_refused(fake: Live) -> None:
    asked = calls(BODIES, 5)

    async def everything() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(base_url=fake.url, timeout=60, limits=limits) as client:
            return await asyncio.gather(*(client.request(m, p, content=c, headers=h) for m, p, c, h in asked))

    for call, answer in zip(asked, asyncio.run(everything()), strict=True):
        assert answer.status_code < 500, (call, answer.text)
        if answer.status_code >= 400:
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, call
    assert fake.bridge.inside == 0


def test_noise_instead_of_http(fake: Live) -> None:
    rng = random.Random(6)
    host, port = fake.url.removeprefix("http://").split(":")
    for _ in range(RAW_CONNECTIONS):
        with socket.create_connection((host, int(port)), timeout=10) as sock:
            sock.sendall(rng.randbytes(rng.randint(1, 100)) + b"\r\n\r\n")
            answer = b""
            while part := sock.recv(4096):
                answer += part
            assert answer.startswith(b"HTTP/1.1 400")
    assert fake.get("/health").status_code == 200
