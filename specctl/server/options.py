"""What the operator chose about the server."""

from __future__ import annotations

from dataclasses import dataclass

PER_REQUEST_METRICS = ("none", "summary", "detailed")


@dataclass(frozen=True)
class ServerOptions:
    """Settings of the HTTP side.

    `model_names`: names a request may give; the first is the one answered with. `max_model_len` in tokens (prompt and
    answer), `max_num_seqs` requests that run at once, `max_queue` more that may wait. Times in seconds,
    `max_body_bytes` in bytes. `api_keys` empty: open to everybody who reaches the address. `per_request_metrics`
    "summary" adds `metrics.speculative_decoding` to answers, "detailed" tells each of their drafts too. `method`: how
    drafts are made, for the alarm about broken ones; empty where there are none, or where a lossy acceptance says
    little about them. `allowed_origins`: web pages of these origins may call (CORS), "*" for all, none by default. A
    request's head must come within `head_timeout_s` and its body within `body_timeout_s`; a client that does not read
    for `read_timeout_s` is cut off. A connection without a call is kept for `keep_alive_s`: longer than the pools of
    clients and proxies keep theirs, or a call could meet a connection that is just being closed.
    """

    model_names: tuple[str, ...]
    max_model_len: int
    max_num_seqs: int = 16
    max_queue: int = 256
    api_keys: tuple[str, ...] = ()
    max_body_bytes: int = 8 * 1024 * 1024
    allowed_origins: tuple[str, ...] = ()
    head_timeout_s: float = 30.0
    body_timeout_s: float = 30.0
    read_timeout_s: float = 60.0
    keep_alive_s: float = 75.0
    log_interval_s: float = 10.0
    per_request_metrics: str = "none"
    speculative: bool = False
    method: str = ""

    @property
    def keep_steps(self) -> bool:
        """Whether answers tell each draft by itself."""
        return self.per_request_metrics == "detailed"

    @property
    def capacity(self) -> int:
        """Requests that may be inside at once, running or waiting."""
        return self.max_num_seqs + self.max_queue
