"""A streaming OpenAI-compatible server that plays a script, in a thread on the loopback.

What a prompt says decides what happens to it: `500` is answered with that status, `die` closes the connection in the
middle, `half` ends the stream without an end, `error` sends an error event, `mute` leaves usage out, `page` is a page
of HTML, `moved` leads to nothing and `circle` to itself. Everything else gets the script: chunks of token ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Chunks = Sequence[Sequence[int]]


class Clock:
    """A clock that the server moves and the client reads, with a count of the readings."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls = 0

    def __call__(self) -> float:
        self.calls += 1
        return self.now


@dataclass
class Script:
    """`chunks`: what an answer is made of; `gaps_s`: how long before each chunk, on `clock` if there is one, else
    really. `pages`: bodies of `/metrics`, the last one for ever; None: 404. `sends_ids`: whether it knows token ids.
    """

    chunks: Chunks = ((5,), (6, 7, 8), (9, 2))
    gaps_s: Sequence[float] = (0.0, 0.0, 0.0)
    clock: Clock | None = None
    pages: list[str] | None = None
    sends_ids: bool = False
    extra_last: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    models: Sequence[str] = ("scripted",)
    logprobs: Sequence[tuple[float, float]] = ()
    on_request: Callable[[], None] = lambda: None
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""


class Server:
    """The routes that play a script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_post("/v1/chat/completions", self.answer)
        app.router.add_post("/v1/completions", self.answer)
        return app

    async def models(self, request: web.Request) -> web.Response:
        if self.script.key and request.headers.get("Authorization") != f"Bearer {self.script.key}":
            return web.json_response({"error": {"message": "no key"}}, status=401)
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.script.models]})

    async def metrics(self, request: web.Request) -> web.Response:  # noqa: ARG002
        pages = self.script.pages
        if pages is None:
            raise web.HTTPNotFound
        return web.Response(text=pages.pop(0) if len(pages) > 1 else pages[0])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.script.requests.append(body)
        self.script.on_request()
        text = body["messages"][-1]["content"] if "messages" in body else str(body["prompt"])
        if "page" in text:
            return web.Response(text="<html>hello</html>", content_type="text/html")
        if "moved" in text:
            raise web.HTTPFound("/elsewhere")
        if "circle" in text:
            raise web.HTTPTemporaryRedirect("/v1/chat/completions")
        if "500" in text:
            return web.json_response({"error": {"message": "out of memory"}}, status=500)
        if not body.get("stream"):
            return web.json_response(self._whole(body))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self._stream(request, response, body, text)
        return response

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        content = [{"top_logprobs": [{"logprob": one}, {"logprob": two}]} for one, two in self.script.logprobs][
            : body["max_tokens"]
        ]
        return {"choices": [{"message": {"content": ""}, "logprobs": {"content": content}}]}

    async def _stream(
        self, request: web.Request, response: web.StreamResponse, body: dict[str, Any], text: str
    ) -> None:
        chunks, gaps = self.script.chunks, self.script.gaps_s
        chat = "messages" in body
        for place, (chunk, gap) in enumerate(zip(chunks, gaps, strict=True)):
            last = place == len(chunks) - 1
            if "die" in text and last:
                assert request.transport is not None
                request.transport.close()
                return
            if "error" in text and last:
                await self._send(response, {"error": {"message": "the worker died"}})
                return
            if "half" in text and last:
                return
            words = "".join(f"t{token} " for token in chunk)
            choice: dict[str, Any] = {"index": 0, "finish_reason": "stop" if last else None}
            choice |= {"delta": {"content": words}} if chat else {"text": words}
            if body.get("return_token_ids"):
                choice["token_ids"] = list(chunk)
            await self._wait(gap)
            await self._send(response, {"choices": [choice]})
        if "mute" not in text:
            usage = {"prompt_tokens": 11, "completion_tokens": sum(map(len, chunks))}
            await self._send(response, {"choices": [], "usage": usage} | self.script.extra_last)
        await response.write(b"data: [DONE]\n\n")

    async def _wait(self, gap_s: float) -> None:
        clock = self.script.clock
        if clock is not None:
            clock.now += gap_s
        elif gap_s:
            await asyncio.sleep(gap_s)

    async def _send(self, response: web.StreamResponse, event: dict[str, Any]) -> None:
        clock = self.script.clock
        calls = 0 if clock is None else clock.calls
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        # The clock stands still until the client has looked at it for this chunk.
        while clock is not None and event.get("choices") and clock.calls == calls:
            await asyncio.sleep(0.0002)


@contextlib.contextmanager
def serving(script: Script) -> Iterator[Script]:
    """The server, with its address in `script.url`."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    runner = web.AppRunner(Server(script).app(), shutdown_timeout=0.1)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        script.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()

    def work() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield script
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        time.sleep(0)
