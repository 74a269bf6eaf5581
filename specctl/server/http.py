"""The routes. Each reads its body, asks `protocol` what it means, and lets `generation` or the tokenizer answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import metadata
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

from specctl.server.api_error import ApiError
from specctl.server.generation import Service, respond
from specctl.server.guard import Guard, error_response, read_body
from specctl.server.interval_log import IntervalLog
from specctl.server.metrics import ServerMetrics
from specctl.server.protocol import (
    GenerationCall,
    parse_json,
    read_chat,
    read_completion,
    read_detokenize,
    read_tokenize,
)


def make_app(service: Service, metrics: ServerMetrics) -> FastAPI:
    """The application. Its lifespan starts the engine's thread and ends it."""
    options = service.options

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.bridge.start()
        ticker = asyncio.create_task(_log_intervals(service, metrics, options.log_interval_s))
        yield
        ticker.cancel()
        service.close()

    # No pages of documentation: they load scripts from elsewhere.
    # Newer releases trace each request with OpenTelemetry unless told not to; older ones ignore the argument.
    off = {"tracing": False, "metrics": False, "logs": False}
    extra: dict[str, Any] = {"telemetry": off}
    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, **extra)
    app.add_middleware(Guard, options=options, metrics=metrics)
    if options.allowed_origins:  # else no CORS headers: browsers keep the pages of other sites out
        # Outside the guard: a browser asks first, without a key.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.allowed_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("*",),
            expose_headers=("x-request-id",),
        )
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ApiError, _api_error)
    routes = Routes(service, metrics)
    for method, path, endpoint in routes.table():
        app.add_api_route(path, endpoint, methods=[method], response_model=None)
    return app


class Routes:
    """The endpoints over one service."""

    def __init__(self, service: Service, metrics: ServerMetrics) -> None:
        self._service = service
        self._metrics = metrics
        self._started = int(time.time())

    def table(self) -> list[tuple[str, str, Callable[..., Any]]]:
        """`(method, path, endpoint)` of each route."""
        return [
            ("POST", "/v1/chat/completions", self.chat),
            ("POST", "/v1/completions", self.completion),
            ("GET", "/v1/models", self.models),
            ("GET", "/v1/models/{name:path}", self.model),
            ("POST", "/tokenize", self.tokenize),
            ("POST", "/detokenize", self.detokenize),
            ("GET", "/health", self.health),
            ("GET", "/version", self.version),
            ("GET", "/metrics", self.metrics),
        ]

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        return await self._generate(request, read_chat)

    async def completion(self, request: Request) -> Response:
        """POST /v1/completions."""
        return await self._generate(request, read_completion)

    async def _generate(self, request: Request, read: Callable[[Mapping[str, Any]], GenerationCall]) -> Response:
        arrival = time.monotonic()
        call = read(await self._json(request))
        self._metrics.asked(call.n)
        return await respond(self._service, call, arrival, request.receive, request.scope["specctl"])

    async def _json(self, request: Request) -> dict[str, Any]:
        return parse_json(await read_body(request, self._service.options))

    async def models(self) -> Response:
        """GET /v1/models."""
        names = self._service.options.model_names
        return JSONResponse({"object": "list", "data": [self._card(name) for name in names]})

    async def model(self, name: str) -> Response:
        """GET /v1/models/NAME."""
        self._service.check_model(name)
        return JSONResponse(self._card(name))

    def _card(self, name: str) -> dict[str, Any]:
        options = self._service.options
        card = {"id": name, "object": "model", "created": self._started, "owned_by": "specctl"}
        return card | {"root": options.model_names[0], "parent": None, "max_model_len": options.max_model_len}

    async def tokenize(self, request: Request) -> Response:
        """POST /tokenize: the ids that a prompt or a conversation becomes."""
        service = self._service
        call = read_tokenize(await self._json(request))
        service.check_model(call.model)
        ids = await service.encode(call.prompt, "prompt", call.add_special_tokens)
        texts = [service.target.token_bytes(token).decode("utf-8", "replace") for token in ids]
        shown = texts if call.return_token_strs else None
        body = {"count": len(ids), "max_model_len": service.options.max_model_len, "tokens": ids, "token_strs": shown}
        return JSONResponse(body)

    async def detokenize(self, request: Request) -> Response:
        """POST /detokenize: the text of token ids, special tokens included."""
        service = self._service
        model, ids = read_detokenize(await self._json(request))
        service.check_model(model)
        service.check_vocabulary(ids, "tokens")
        return JSONResponse({"prompt": await service.off_loop(service.target.decode, ids, False)})

    async def health(self) -> Response:
        """GET /health: 200 while new requests are taken, else 503."""
        bridge = self._service.bridge
        status = "ok" if bridge.alive else "dead"
        if bridge.is_draining:
            status = "draining"
        return JSONResponse({"status": status}, status_code=200 if status == "ok" else 503)

    async def version(self) -> Response:
        """GET /version."""
        return JSONResponse({"version": version()})

    async def metrics(self, request: Request) -> Response:
        """GET /metrics, in Prometheus' text format."""
        page, content_type = self._metrics.exposition(request.headers.get("accept", ""))
        return Response(page, media_type=content_type)


def version() -> str:
    """specctl's version; "0+unknown" in a checkout that was never installed."""
    try:
        return metadata.version("specctl")
    except metadata.PackageNotFoundError:
        return "0+unknown"


async def _log_intervals(service: Service, metrics: ServerMetrics, interval_s: float) -> None:
    line = IntervalLog(service.bridge, metrics, service.options.method)
    try:
        while True:
            await asyncio.sleep(interval_s)
            line.write()
    finally:
        line.write()


async def _api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_response(error)


async def _http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return error_response(ApiError(404, "no such path", code="not_found"))
    if error.status_code == 405:
        message = f"this path does not answer {request.method[:16]}"
        return error_response(ApiError(405, message, code="method_not_allowed", headers=error.headers))
    return error_response(ApiError(error.status_code, str(error.detail)))
