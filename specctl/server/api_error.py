"""Errors that a client sees, in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


class ApiError(Exception):
    """An answer that refuses a request: HTTP `status`, a `message` for people, `param` (the field) and `code`."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})

    @property
    def type(self) -> str:
        """OpenAI's name for this class of error."""
        return _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    def body(self) -> dict[str, Any]:
        """`{"error": {"message", "type", "param", "code"}}`."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A 400 that names the field."""
    return ApiError(400, message, param=param, code=code)


def queue_full(waiting: int, retry_after_s: int = 1) -> ApiError:
    """A 429: as many requests wait as `--max-queue` allows."""
    return ApiError(
        429,
        f"the queue is full: {waiting} requests are running or waiting; try again later",
        code="queue_full",
        headers={"Retry-After": str(retry_after_s)},
    )


def draining() -> ApiError:
    """A 503: the server finishes what is running and takes nothing new."""
    return ApiError(
        503, "the server is shutting down and takes no new requests", code="draining", headers={"Retry-After": "5"}
    )


def engine_dead() -> ApiError:
    """A 500: the engine's thread has ended; the server must be started again."""
    return ApiError(500, "the engine has stopped after an internal error; see the server's log", code="engine_dead")


def internal_error() -> ApiError:
    """A 500 for what nobody foresaw: the details are in the log, not in the answer."""
    return ApiError(500, "internal error; see the server's log under this request's id", code="internal_error")
