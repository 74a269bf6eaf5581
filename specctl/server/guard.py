"""What stands before every route: request ids, keys, size limits, the log line, and the last catch for faults."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specctl.server.api_error import ApiError, internal_error
from specctl.server.metrics import ServerMetrics
from specctl.server.options import ServerOptions

log = logging.getLogger("specctl.server")

PUBLIC_PATHS = frozenset({"/health", "/metrics", "/version"})
_QUIET_PATHS = frozenset({"/health", "/metrics"})  # asked every few seconds by machines
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class KeyRing:
    """The accepted API keys. Without any, everybody is let in."""

    def __init__(self, keys: Sequence[str]) -> None:
        # Digests have one length, so the comparison's time says nothing about a key, not even how long it is.
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def check(self, authorization: bytes) -> None:
        """Raises ApiError (401) unless the header is `Bearer` and an accepted key."""
        if not self._digests:
            return
        scheme, _, key = authorization.partition(b" ")
        given = hashlib.sha256(key.strip()).digest()
        # Every key is compared, whichever fits.
        fits = [hmac.compare_digest(given, digest) for digest in self._digests]
        if scheme.lower() != b"bearer" or not any(fits):
            message = "a valid API key is needed: Authorization: Bearer KEY"
            raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


class Guard:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, options: ServerOptions, metrics: ServerMetrics) -> None:
        self._app = app
        self._keys = KeyRing(options.api_keys)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"req-{uuid.uuid4().hex}"
        scope["specctl"] = seen = {"request": request_id, "status": 0}
        answering = _Answering(send, request_id, seen)
        arrival = time.monotonic()
        try:
            if scope["path"] not in PUBLIC_PATHS:
                self._keys.check(headers.get(b"authorization", b""))
            await self._app(scope, receive, answering.send)
        except ApiError as exc:
            await answering.fail(exc, scope, receive)
        except ClientDisconnect:
            seen["status"] = 499
        except Exception as exc:
            log.error("request=%s failed: %s", request_id, type(exc).__name__, exc_info=exc)
            await answering.fail(internal_error(), scope, receive)
        finally:
            self._note(scope, seen, arrival)

    def _note(self, scope: Scope, seen: dict[str, Any], arrival: float) -> None:
        if seen["status"] >= 400:
            self._metrics.refused(seen["status"])
        quiet = scope["path"] in _QUIET_PATHS and seen["status"] < 500
        rest = " ".join(f"{name}={value}" for name, value in seen.items() if name != "request")
        log.log(
            logging.DEBUG if quiet else logging.INFO,
            "request=%s method=%s path=%r %s ms=%.1f",
            seen["request"],
            scope["method"][:16],
            scope["path"][:100],
            rest,
            1000 * (time.monotonic() - arrival),
        )


class _Answering:
    """Adds the request id to the answer's headers and remembers its status."""

    def __init__(self, send: Send, request_id: str, seen: dict[str, Any]) -> None:
        self._send = send
        self._request_id = request_id
        self._seen = seen
        self._started = False

    async def send(self, message: Message) -> None:
        """ASGI's send."""
        if message["type"] == "http.response.start":
            self._started = True
            self._seen["status"] = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self._request_id.encode())]
        await self._send(message)

    async def fail(self, error: ApiError, scope: Scope, receive: Receive) -> None:
        """Answer with an error, unless an answer has begun: then the connection just ends."""
        if not self._started:
            await error_response(error)(scope, receive, self.send)


def error_response(error: ApiError) -> JSONResponse:
    """The answer of an `ApiError`."""
    return JSONResponse(error.body(), status_code=error.status, headers=error.headers)


async def read_body(request: Request, options: ServerOptions) -> bytes:
    """The body, as far as it is allowed to be.

    Raises ApiError: 413 when it is too large, 408 when it comes too slowly, 415 when it is compressed.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        message = f"a body with the content encoding '{encoding[:32]}' is not read; send it as it is"
        raise ApiError(415, message, code="unsupported_encoding", headers={"Connection": "close"})
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > options.max_body_bytes:
        raise _too_large(options)
    try:
        async with asyncio.timeout(options.body_timeout_s):
            return await _collect(request, options)
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {options.body_timeout_s:g} seconds") from None


async def _collect(request: Request, options: ServerOptions) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > options.max_body_bytes:
            raise _too_large(options)
        parts.append(part)
    return b"".join(parts)


def _too_large(options: ServerOptions) -> ApiError:
    # The rest of the body will not be read, so the connection cannot be used again.
    message = f"the body is larger than the limit of {options.max_body_bytes} bytes"
    return ApiError(413, message, code="body_too_large", headers={"Connection": "close"})
