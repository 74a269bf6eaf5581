"""Clients that behave as clients do: they ask, stream, hang up in the middle, and send bodies that make no sense."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

BAD_BODIES: tuple[bytes, ...] = (
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b'{"prompt": 5}',
    b'{"prompt": "x", "temperature": "hot"}',
    b'{"prompt": "x", "max_tokens": -1}',
    b'{"prompt": "x", "logit_bias": {"a": 1}}',
    b'{"prompt": "x", "no_such_field": 1}',
    b'{"prompt": "x", "response_format": {"type": "json_schema"}}',
)


@dataclass
class Tally:
    """What became of the calls. `wrong`: answers that were not the expected ones, and statuses nobody asked for."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def body_of(prompt: str, index: int) -> dict[str, Any]:
    """A greedy call: its answer is the same however often it is asked."""
    return {"prompt": prompt, "temperature": 0, "max_tokens": 8 + 8 * (index % 5), "ignore_eos": bool(index % 2)}


async def expected(url: str, prompts: Sequence[str]) -> list[str]:
    """The answers, asked for one at a time."""
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:
        found = []
        for index, prompt in enumerate(prompts):
            answer = await client.post("/v1/completions", json=body_of(prompt, index))
            answer.raise_for_status()
            found.append(answer.json()["choices"][0]["text"])
        return found


async def soak(url: str, prompts: Sequence[str], clients: int, seconds: float, seed: int = 0) -> Tally:
    """`clients` at once for so long: a third of their calls hang up at random, a tenth have bad bodies."""
    tally, answers = Tally(), await expected(url, prompts)
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as http:
        loops = [_client(http, prompts, answers, tally, random.Random(f"{seed}/{i}"), end) for i in range(clients)]
        await asyncio.gather(*loops)
    return tally


async def _client(
    http: httpx.AsyncClient,
    prompts: Sequence[str],
    answers: Sequence[str],
    tally: Tally,
    draw: random.Random,
    end: float,
) -> None:
    while time.monotonic() < end:
        kind, index = draw.random(), draw.randrange(len(prompts))
        try:
            if kind < 1 / 3:
                await _hang_up(http, body_of(prompts[index], index), tally, draw)
            elif kind < 1 / 3 + 0.1:
                await _nonsense(http, tally, draw)
            else:
                await _ask(http, body_of(prompts[index], index), answers[index], tally, draw)
        except httpx.HTTPError as error:
            tally.wrong.append(f"{type(error).__name__}: {error}")


async def _hang_up(http: httpx.AsyncClient, body: dict[str, Any], tally: Tally, draw: random.Random) -> None:
    tally.counts["hung up"] += 1
    async with http.stream("POST", "/v1/completions", json=body | {"stream": True}) as response:
        if response.status_code not in (200, 429):
            tally.wrong.append(f"{response.status_code} before hanging up")
        lines = response.aiter_lines()
        for _ in range(draw.randrange(6)):
            if await anext(lines, None) is None:
                break


async def _nonsense(http: httpx.AsyncClient, tally: Tally, draw: random.Random) -> None:
    body = draw.choice(BAD_BODIES)
    response = await http.post(draw.choice(["/v1/completions", "/v1/chat/completions"]), content=body)
    tally.counts["bad bodies"] += 1
    if response.status_code != 400 or "error" not in response.json():
        tally.wrong.append(f"{response.status_code} for {body!r}")


async def _ask(http: httpx.AsyncClient, body: dict[str, Any], wanted: str, tally: Tally, draw: random.Random) -> None:
    stream = draw.random() < 0.5
    response = await http.post("/v1/completions", json=body | {"stream": stream})
    if response.status_code == 429:
        tally.counts["429"] += 1
        await asyncio.sleep(draw.uniform(0.05, 0.5))
        return
    if response.status_code != 200:
        tally.wrong.append(f"{response.status_code}: {response.text[:200]}")
        return
    tally.counts["answered"] += 1
    found = _text(response.text) if stream else response.json()["choices"][0]["text"]
    if found != wanted:
        tally.wrong.append(f"{body['prompt']!r}: {found!r}, expected {wanted!r}")


def _text(events: str) -> str:
    lines = [line[6:] for line in events.split("\n\n") if line]
    if lines.pop() != "[DONE]":
        return "a stream that was cut off"
    return "".join(choice["text"] for line in lines for choice in json.loads(line)["choices"])
