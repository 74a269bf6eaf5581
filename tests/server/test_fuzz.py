"""Bodies, headers and paths that make no sense: a 4xx in the error shape each, no 5xx, no hang. Seeded."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from typing import Any

import httpx

from tests.server.live import Live

BODIES = 400
RAW_CONNECTIONS = 60
GOOD: dict[str, Any] = {"model": "fake", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}]}
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    -1e308,
    "",
    "x",
    "\ud800",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
    [[]],
    [None],
]
FIELDS = [
    "model",
    "prompt",
    "messages",
    "n",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
]
FIELDS += ["stop", "stop_token_ids", "max_tokens", "logprobs", "ignore_eos", "return_token_ids", "tokens", "\x00", "é"]
PATHS = ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/models/%2e%2e", "/a%00b", "//v1"]
METHODS = ["POST"] * 12 + ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"]
HEADERS = ["authorization", "content-type", "accept", "x-request-id", "content-encoding", "origin"]


def body(rng: random.Random) -> bytes:
    """Wrong fields, damaged JSON or noise."""
    kind = rng.random()
    if kind < 0.6:
        fields = {name: GOOD[name] for name in rng.sample(list(GOOD), rng.randint(0, 3))}
        fields |= {name: rng.choice(VALUES) for name in rng.sample(FIELDS, rng.randint(1, 4))}
        return json.dumps(fields).encode()
    if kind < 0.8:
        raw = bytearray(json.dumps(GOOD).encode())
        for _ in range(rng.randint(1, 5)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        return bytes(raw)
    return rng.randbytes(rng.randint(0, 200))


def test_nonsense_is_refused(fake: Live) -> None:
    rng = random.Random(5)
    calls = [
        (
            rng.choice(METHODS),
            rng.choice(PATHS),
            body(rng),
            {rng.choice(HEADERS): rng.choice(["x", "bearer", "a" * 500])},
        )
        for _ in range(BODIES)
    ]

    async def everything() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(base_url=fake.url, timeout=60, limits=limits) as client:
            return await asyncio.gather(*(client.request(m, p, content=c, headers=h) for m, p, c, h in calls))

    for call, answer in zip(calls, asyncio.run(everything()), strict=True):
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
