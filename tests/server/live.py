"""A real uvicorn in a thread, over any engine, on a free port of the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import openai

from specctl.server.address import bind, url_of
from specctl.server.bridge import Bridge
from specctl.server.life import DrainingServer, make_server, run
from specctl.server.options import ServerOptions

WAIT_S = 20.0


@dataclass
class Live:
    """A running server and ways to speak to it."""

    url: str
    engine: Any
    bridge: Bridge
    server: DrainingServer
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    def client(self, **options: Any) -> openai.OpenAI:
        """A synchronous client that neither retries nor waits for ever."""
        return openai.OpenAI(
            **{"base_url": f"{self.url}/v1", "api_key": "none", "max_retries": 0, "timeout": WAIT_S} | options
        )

    def async_client(self) -> openai.AsyncOpenAI:
        """The asynchronous one."""
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=WAIT_S)

    def post(self, path: str, **options: Any) -> httpx.Response:
        """A bare POST."""
        return httpx.post(self.url + path, timeout=WAIT_S, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """A bare GET."""
        return httpx.get(self.url + path, timeout=WAIT_S, **options)

    def counters(self) -> dict[str, float]:
        """Every sample of /metrics: `name{label=value,…}` without the labels that are always the same."""
        from prometheus_client.parser import text_string_to_metric_families

        found = {}
        for family in text_string_to_metric_families(self.get("/metrics").text):
            for sample in family.samples:
                labels = {k: v for k, v in sample.labels.items() if k not in ("model_name", "engine")}
                found[sample.name + "".join(f"[{k}={v}]" for k, v in sorted(labels.items()))] = sample.value
        return found

    def end(self) -> None:
        """As a first signal does."""
        self.loop.call_soon_threadsafe(self.server.begin_end)


@contextlib.contextmanager
def live(engine: Any, target: Any, *, drain_timeout_s: float = 10.0, **changes: Any) -> Iterator[Live]:
    """Serve `engine` until the block ends. `changes` go to `ServerOptions`."""
    given = {
        "model_names": ("fake",),
        "max_model_len": 512,
        "max_num_seqs": 4,
        "speculative": engine.num_speculative_tokens > 0,
    }
    options = ServerOptions(**given | changes)
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    def on_ready() -> None:
        loops.append(asyncio.get_running_loop())
        ready.set()

    server = make_server(engine, target, options, drain_timeout_s, on_ready)
    sock = bind("127.0.0.1", 0)
    url = url_of(sock)
    thread = threading.Thread(target=run, args=(server, sock), daemon=True)
    thread.start()
    assert ready.wait(WAIT_S), "the server did not start"
    found = Live(url, engine, server.bridge, server, loops[0], thread)
    try:
        yield found
    finally:
        if thread.is_alive():
            with contextlib.suppress(RuntimeError):
                found.end()
                found.end()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the server did not end"
