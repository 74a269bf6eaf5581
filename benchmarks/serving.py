"""A `specctl serve` of its own process, and calls to it: what the benchmarks of the server share."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from benchmarks.request_mixes import Call, joined

START_S = 600.0


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of a server with these arguments, on a free port, until the block ends."""
    command = [sys.executable, "-m", "specctl", "serve", "--port", "0", "--log-level", "warning", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    if status != 0:
        raise RuntimeError(f"the server ended with status {status}")


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None, "it was asked for"
    said, end = [], time.monotonic() + START_S
    for line in process.stdout:
        said.append(line)
        if line.startswith("serving"):
            return line.split(" at ")[1].split("/v1")[0]
        if time.monotonic() > end:
            break
    raise RuntimeError("the server did not start:\n" + "".join(said))


async def answer(client: httpx.AsyncClient, call: Call) -> dict[str, Any]:
    """The answer to a call, a streamed one put together. Raises RuntimeError for a status other than 200."""
    path, body = call
    response = await client.post(path, json=body)
    if response.status_code != 200:
        raise RuntimeError(f"{response.status_code} for {body}: {response.text[:500]}")
    if not body.get("stream"):
        found: dict[str, Any] = response.json()
        return found
    lines = [line[6:] for line in response.text.split("\n\n") if line]
    if lines.pop() != "[DONE]":
        raise RuntimeError(f"a stream was cut off: {body}")
    return joined([json.loads(line) for line in lines])


def ask(url: str, calls: Sequence[Call], at_once: int) -> list[dict[str, Any]]:
    """The answers to all calls, `at_once` of them at a time."""

    async def run() -> list[dict[str, Any]]:
        gate = asyncio.Semaphore(at_once)
        async with httpx.AsyncClient(base_url=url, timeout=300) as client:

            async def one(call: Call) -> dict[str, Any]:
                async with gate:
                    return await answer(client, call)

            return await asyncio.gather(*(one(call) for call in calls))

    return asyncio.run(run())
