"""A running OpenAI-compatible server: where it is, what it is, what it serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from specctl.dialects.counters import Page, read_page
from specctl.errors import MissingError, SpecctlError, UsageError

if TYPE_CHECKING:
    from aiohttp import ClientSession

CHAT, COMPLETIONS = "chat", "completions"
PROBE_S = 10.0


@dataclass(frozen=True)
class Endpoint:
    """How to reach a server. `url` is its root, without `/v1`; `model` None: the one it lists first.

    `extra`: further fields of every request's body. `timeout_s`: the longest a request may take.
    """

    url: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    form: str = CHAT
    extra: dict[str, Any] = field(default_factory=dict)
    timeout_s: float = 600.0

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}


@dataclass(frozen=True)
class Server:
    """What a server said of itself. `engine`: `vllm`, `sglang`, `specctl`, or None; `page`: its first `/metrics`."""

    endpoint: Endpoint
    model: str
    engine: str | None
    release: str | None
    page: Page | None
    max_model_len: int | None = None


def root_of(url: str, option: str) -> str:
    """The root of a server's URL, `/v1` and what follows taken off. Raises `UsageError` for what is no such URL."""
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"{option} is {url!r}; it must look like http://localhost:8000")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path.split('/v1')[0]}"


async def probe(session: ClientSession, endpoint: Endpoint) -> Server:
    """Ask a server what it is. Raises `MissingError` where nobody answers, `SpecctlError` where it refuses us."""
    models = await _models(session, endpoint)
    served = [str(row.get("id")) for row in models]
    model = endpoint.model or served[0]
    if endpoint.model is not None and served and endpoint.model not in served:
        raise SpecctlError(f"{endpoint.url} does not serve {endpoint.model}", help=f"it serves {', '.join(served)}")
    row = next((row for row in models if row.get("id") == model), {})
    page = await metrics_page(session, endpoint, model)
    engine, release = await _engine(session, endpoint, page)
    length = row.get("max_model_len")
    return Server(endpoint, model, engine, release, page, length if isinstance(length, int) else None)


async def _models(session: ClientSession, endpoint: Endpoint) -> list[dict[str, Any]]:
    import aiohttp

    try:
        async with session.get(f"{endpoint.url}/v1/models", headers=endpoint.headers, timeout=_timeout()) as answer:
            status, body = answer.status, await answer.json(content_type=None) if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise MissingError(
            f"nothing answers at {endpoint.url}: {error or type(error).__name__}", help="is the server up?"
        ) from None
    except ValueError:
        status, body = 200, None
    if status in (401, 403):
        raise SpecctlError(f"{endpoint.url} refuses the key (HTTP {status})", help="give --api-key or OPENAI_API_KEY")
    rows = body.get("data") if isinstance(body, dict) else None
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if not found and endpoint.model is None:
        raise SpecctlError(
            f"{endpoint.url}/v1/models names no model (HTTP {status})",
            help="is this an OpenAI-compatible server? --model",
        )
    return found


def _timeout() -> Any:
    import aiohttp

    return aiohttp.ClientTimeout(total=PROBE_S)


async def _get(session: ClientSession, endpoint: Endpoint, path: str) -> str | None:
    """The body of a GET, None for anything but a 200."""
    import aiohttp

    try:
        async with session.get(endpoint.url + path, headers=endpoint.headers, timeout=_timeout()) as answer:
            return await answer.text() if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError, UnicodeDecodeError):
        return None


async def metrics_page(session: ClientSession, endpoint: Endpoint, model: str | None) -> Page | None:
    """The server's `/metrics` now, or None."""
    text = await _get(session, endpoint, "/metrics")
    return None if text is None else read_page(text, model)


async def _engine(session: ClientSession, endpoint: Endpoint, page: Page | None) -> tuple[str | None, str | None]:
    """Which engine this is, and its release, by the names on `/metrics` and by what it says at `/version`."""
    families = page.families if page else set()
    release = _field(await _get(session, endpoint, "/version"), "version")
    if "specctl" in families:
        return "specctl", release
    if "sglang" in families or not families & {"vllm"}:
        info = await _get(session, endpoint, "/server_info") or await _get(session, endpoint, "/get_server_info")
        told = _field(info, "version")
        if "sglang" in families or told:
            return "sglang", told
    return ("vllm", release) if "vllm" in families or release else (None, None)


def _field(text: str | None, name: str) -> str | None:
    import json

    try:
        body = json.loads(text or "null")
    except ValueError:
        return None
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else None
