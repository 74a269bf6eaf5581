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


LOST, MIXED_UP, FAULT, OTHER = KINDS = ("lost", "mixed up", "of status 5xx", "of another status than due")


@dataclass
class Tally:
    """What became of the calls. `wrong`: one line a call that went wrong, with its kind of `KINDS` in front."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, kind: str, what: str) -> None:
        """One more that went wrong."""
        self.wrong.append(f"{kind}: {what}")

    def note_status(self, response: httpx.Response, where: str) -> None:
        """A status that should not have come."""
        self.note(FAULT if response.status_code >= 500 else OTHER, f"{response.status_code} {where}")

    def of_kind(self, kind: str) -> int:
        """How many went wrong so."""
        return sum(line.startswith(f"{kind}: ") for line in self.wrong)


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


async def soak(
    url: str, prompts: Sequence[str], clients: int, seconds: float, seed: int = 0, pause_s: float = 0.0
) -> Tally:
    """`clients` at once for so long: a third of their calls hang up at random, a tenth have bad bodies.

    `pause_s`: what a client waits between two calls, on average.
    """
    tally, answers = Tally(), await expected(url, prompts)
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as http:
        draws = [random.Random(f"{seed}/{i}") for i in range(clients)]
        await asyncio.gather(*(_client(http, prompts, answers, tally, draw, end, pause_s) for draw in draws))
    return tally


async def _client(
    http: httpx.AsyncClient,
    prompts: Sequence[str],
    answers: Sequence[str],
    tally: Tally,
    draw: random.Random,
    end: float,
    pause_s: float,
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
            tally.note(LOST, f"{type(error).__name__} {error}")
        await asyncio.sleep(draw.uniform(0, 2 * pause_s))


async def _hang_up(http: httpx.AsyncClient, body: dict[str, Any], tally: Tally, draw: random.Random) -> None:
    tally.counts["hung up"] += 1
    async with http.stream("POST", "/v1/completions", json=body | {"stream": True}) as response:
        if response.status_code not in (200, 429):
            tally.note_status(response, "before hanging up")
        lines = response.aiter_lines()
        for _ in range(draw.randrange(6)):
            if await anext(lines, None) is None:
                break


async def _nonsense(http: httpx.AsyncClient, tally: Tally, draw: random.Random) -> None:
    body = draw.choice(BAD_BODIES)
    response = await http.post(draw.choice(["/v1/completions", "/v1/chat/completions"]), content=body)
    tally.counts["bad bodies"] += 1
    if response.status_code != 400 or "error" not in response.json():
        tally.note_status(response, f"for {body!r}")


async def _ask(http: httpx.AsyncClient, body: dict[str, Any], wanted: str, tally: Tally, draw: random.Random) -> None:
    stream = draw.random() < 0.5
    response = await http.post("/v1/completions", json=body | {"stream": stream})
    if response.status_code == 429:
        tally.counts["429"] += 1
        await asyncio.sleep(draw.uniform(0.05, 0.5))
        return
    if response.status_code != 200:
        tally.note_status(response, response.text[:200])
        return
    tally.counts["answered"] += 1
    found = _text(response.text) if stream else response.json()["choices"][0]["text"]
    if found is None:
        tally.note(LOST, f"{body['prompt']!r}: the stream was cut off")
    elif found != wanted:
        tally.note(MIXED_UP, f"{body['prompt']!r}: {found!r}, expected {wanted!r}")


def _text(events: str) -> str | None:
    lines = [line[6:] for line in events.split("\n\n") if line]
    if lines.pop() != "[DONE]" or any(json.loads(line).get("error") for line in lines):
        return None
    return "".join(choice["text"] for line in lines for choice in json.loads(line)["choices"])
