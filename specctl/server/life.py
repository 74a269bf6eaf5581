"""Start and end of the server process: the address, the signals, the drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from specctl.server.address import TlsFiles, no_address
from specctl.server.api_error import draining
from specctl.server.bridge import Bridge
from specctl.server.connection import ConnectionConfig
from specctl.server.engine_port import EnginePort, TargetPort
from specctl.server.generation import Service
from specctl.server.http import make_app
from specctl.server.metrics import ServerMetrics
from specctl.server.options import ServerOptions

log = logging.getLogger("specctl.server")

_LISTEN_BACKLOG = 2048
_LAST_BYTES_S = 5.0  # after the drain: time for answers that are made to leave the process
_POLL_S = 0.02


class DrainingServer(uvicorn.Server):
    """uvicorn, with an end of our own: the first signal drains, the second stops at once."""

    def __init__(
        self,
        app: ASGIApp,
        bridge: Bridge,
        options: ServerOptions,
        drain_timeout_s: float,
        on_ready: Callable[[], None],
        tls: TlsFiles | None = None,
    ) -> None:
        config = ConnectionConfig(
            app,
            options,
            lifespan="on",
            access_log=False,
            log_config=None,
            log_level="error",  # its warnings are about what clients send, as often as they like
            server_header=False,
            backlog=_LISTEN_BACKLOG,
            timeout_graceful_shutdown=int(_LAST_BYTES_S),
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        super().__init__(config)
        self.bridge = bridge
        self._drain_timeout_s = drain_timeout_s
        self._on_ready = on_ready
        self._num_signals = 0
        self._drained: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn; then tell that requests are taken."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn; but the application's own end is not left out after a second signal: that leaves a traceback."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM come to `begin_end` while the server runs; their old handlers return afterwards."""

        def handle(*_: object) -> None:
            loop.call_soon_threadsafe(self.begin_end)

        loop = asyncio.get_running_loop()
        try:
            old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread (tests): whoever started it ends it
            yield
            return
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def begin_end(self) -> None:
        """Once: drain and end. Again: end at once. Call on the event loop."""
        self._num_signals += 1
        self.bridge.drain()
        if self._num_signals > 1:
            log.warning("stopping at once; %d requests are cut off", self.bridge.inside)
            self.bridge.abort_all(draining())
            self.force_exit = True
            self.should_exit = True
        elif self._drained is None:
            log.info("draining: %d requests to finish, up to %g s", self.bridge.inside, self._drain_timeout_s)
            self._drained = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        end = time.monotonic() + self._drain_timeout_s
        while self.bridge.inside and self.bridge.alive and time.monotonic() < end:
            await asyncio.sleep(_POLL_S)
        if self.bridge.inside:
            log.warning("the drain's time is over; %d requests are cut off", self.bridge.inside)
            self.bridge.abort_all(draining())
        self.should_exit = True


def make_server(
    engine: EnginePort,
    target: TargetPort,
    options: ServerOptions,
    drain_timeout_s: float = 60.0,
    on_ready: Callable[[], None] = lambda: None,
    tls: TlsFiles | None = None,
) -> DrainingServer:
    """Everything between an engine and a socket, put together. `on_ready` is called when requests are taken."""
    k = engine.num_speculative_tokens
    metrics = ServerMetrics(options.model_names[0])
    bridge = Bridge(engine, options.capacity, metrics)
    metrics.watch(bridge, k, options.speculative, engine.lossless, options.method)
    app = make_app(Service(target, bridge, options, k), metrics)
    return DrainingServer(app, bridge, options, drain_timeout_s, on_ready, tls)


def run(server: DrainingServer, sock: socket.socket) -> bool:
    """Serve until a signal ends it. False when the engine's thread did not end in time.

    Raises MissingError when another process took the port while the model was loading.
    """
    try:
        sock.listen(_LISTEN_BACKLOG)
    except OSError as exc:
        host, port = sock.getsockname()[:2]
        raise no_address(host, port, exc) from None
    asyncio.run(server.serve(sockets=[sock]))
    return server.bridge.stop()
