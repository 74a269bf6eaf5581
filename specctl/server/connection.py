"""One client's connection: uvicorn's, with an end to waiting for it.

uvicorn waits for ever for a request that is never finished, and for a client that does not read its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from specctl.server.options import ServerOptions

MOST_AHEAD = 65536  # bytes of later calls that are taken while an earlier one is answered


class ConnectionConfig(uvicorn.Config):
    """uvicorn's settings, and ours for its connections."""

    def __init__(self, app: ASGIApp, options: ServerOptions, **settings: Any) -> None:
        super().__init__(app, http=Connection, ws="none", timeout_keep_alive=int(options.keep_alive_s), **settings)
        self.options = options


class Connection(H11Protocol):
    """Closed where a request's head takes longer than `head_timeout_s`, or a client does not read its answer for
    `read_timeout_s`; the body's time is `guard`'s.
    """

    config: ConnectionConfig

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head = _Timer(self.loop)
        self._unread = _Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is here: its request has to follow."""
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """A piece of a request."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # what makes no sense came behind an answer: there is nobody left to tell
            self.transport.abort()
        if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) <= MOST_AHEAD:
            # uvicorn reads no further while a call waits behind another; then nobody would see the client hang up.
            self.flow.resume_reading()
        self._watch_head()

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._head.stop()
        else:
            # Not begun anew with each byte: a client must not hold a connection by sending one now and then.
            self._head.start(self.config.options.head_timeout_s, self.transport.close)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        super().pause_writing()
        # Not `close`, which waits until everything is read.
        self._unread.start(self.config.options.read_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read on."""
        super().resume_writing()
        self._unread.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._head.stop()
        self._unread.stop()
        super().connection_lost(exc)


class _Timer:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, action: Callable[[], None]) -> None:
        """Do `action` after so long; one that runs already goes on."""
        if self._handle is None:
            self._handle = self._loop.call_later(seconds, action)

    def stop(self) -> None:
        """Do nothing, for now."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
