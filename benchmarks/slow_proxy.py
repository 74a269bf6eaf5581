"""A proxy before an OpenAI-compatible server that slows answers down when many are in flight: a planted slow-down.

    python benchmarks/slow_proxy.py --to http://localhost:8000 --port 9000 --from-concurrency 8 --factor 1.5

From `--from-concurrency` requests in flight on, the time between two chunks of an answer grows to `--factor` times what
it was. With factor 1 it does nothing but stand in between, which makes an honest A/A pair of two of them.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector, web

SESSION = web.AppKey("session", ClientSession)


async def _read(answer: ClientResponse, arrived: asyncio.Queue[tuple[float, bytes] | None]) -> None:
    try:
        async for data, _ in answer.content.iter_chunks():
            arrived.put_nowait((time.perf_counter(), data))
    finally:
        arrived.put_nowait(None)


def make_app(to: str, level: int, factor: float) -> web.Application:
    """The proxy's routes."""
    in_flight = 0

    async def session(app: web.Application):  # type: ignore[no-untyped-def]
        app[SESSION] = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None))
        yield
        await app[SESSION].close()

    async def forward(request: web.Request) -> web.StreamResponse:
        nonlocal in_flight
        in_flight += request.method == "POST"
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            body = await request.read()
            async with request.app[SESSION].request(
                request.method, to + request.path_qs, data=body, headers=headers
            ) as answer:
                response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
                await response.prepare(request)
                # Chunks are read as they come, so that being late with one does not make the next one later still.
                arrived: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
                reader = asyncio.create_task(_read(answer, arrived))
                first = None
                while (chunk := await arrived.get()) is not None:
                    came, data = chunk
                    first = came if first is None else first
                    if in_flight >= level:
                        await asyncio.sleep(max(0.0, first + (came - first) * factor - time.perf_counter()))
                    await response.write(data)
                await reader
                return response
        finally:
            in_flight -= request.method == "POST"

    app = web.Application()
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--from-concurrency", type=int, default=8)
    parser.add_argument("--factor", type=float, default=1.0)
    given = parser.parse_args()
    app = make_app(given.to.rstrip("/"), given.from_concurrency, given.factor)
    web.run_app(app, host="127.0.0.1", port=given.port, print=None)


if __name__ == "__main__":
    main()
