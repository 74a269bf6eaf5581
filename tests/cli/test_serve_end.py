"""The end of a server process while many clients stream."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx

from tests.cli.test_serve import LONG, Process, tiny  # noqa: F401 (a fixture)

STREAMS = 50


def test_a_signal_during_fifty_streams(tiny: Path) -> None:  # noqa: F811
    server = Process(tiny, "--max-num-seqs", 8)

    async def stream(client: httpx.AsyncClient, started: asyncio.Semaphore) -> list[str]:
        async with client.stream("POST", "/v1/completions", json=LONG) as response:
            assert response.status_code == 200
            lines = []
            async for line in response.aiter_lines():
                if line:
                    started.release()
                    lines.append(line)
            return lines

    async def everything() -> list[list[str]]:
        started = asyncio.Semaphore(0)
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            tasks = [asyncio.create_task(stream(client, started)) for _ in range(STREAMS)]
            await started.acquire()
            while httpx.get(f"{server.url}/metrics").text.count("vllm:num_requests_running") == 0:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*tasks)

    try:
        for lines in asyncio.run(everything()):
            assert lines[-1] == "data: [DONE]"
            assert '"finish_reason":"length"' in lines[-2]
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.text
    finally:
        server.process.kill()
