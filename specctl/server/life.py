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

from specctl.server.address import no_address
from specctl.server.api_error import draining
from specctl.server.bridge import Bridge

log = logging.getLogger("specctl.server")

_LISTEN_BACKLOG = 2048
_LAST_BYTES_S = 5.0  # after the drain: time for answers that are made to leave the process
_POLL_S = 0.02


class DrainingServer(uvicorn.Server):
    """uvicorn, with an end of our own: the first signal drains, the second stops at once."""

    def __init__(self, app: ASGIApp, bridge: Bridge, drain_timeout_s: float, on_ready: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            lifespan="on",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            backlog=_LISTEN_BACKLOG,
            timeout_graceful_shutdown=int(_LAST_BYTES_S),
        )
        super().__init__(config)
        self._bridge = bridge
        self._drain_timeout_s = drain_timeout_s
        self._on_ready = on_ready
        self._num_signals = 0
        self._drained: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn; then tell that requests are taken."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

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
        self._bridge.drain()
        if self._num_signals > 1:
            log.warning("stopping at once; %d requests are cut off", self._bridge.inside)
            self._bridge.abort_all(draining())
            self.force_exit = True
            self.should_exit = True
        elif self._drained is None:
            log.info("draining: %d requests to finish, up to %g s", self._bridge.inside, self._drain_timeout_s)
            self._drained = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        end = time.monotonic() + self._drain_timeout_s
        while self._bridge.inside and self._bridge.alive and time.monotonic() < end:
            await asyncio.sleep(_POLL_S)
        if self._bridge.inside:
            log.warning("the drain's time is over; %d requests are cut off", self._bridge.inside)
            self._bridge.abort_all(draining())
        self.should_exit = True


def run(server: DrainingServer, sock: socket.socket, bridge: Bridge) -> bool:
    """Serve until a signal ends it. False when the engine's thread did not end in time.

    Raises MissingError when another process took the port while the model was loading.
    """
    try:
        sock.listen(_LISTEN_BACKLOG)
    except OSError as exc:
        host, port = sock.getsockname()[:2]
        raise no_address(host, port, exc) from None
    asyncio.run(server.serve(sockets=[sock]))
    return bridge.stop()
