"""What a running engine tells of its acceptance, read from its ``/metrics`` and put into one line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import httpx

from specctl.dialects.counters import COUNTS, Page, read_page
from specctl.planning.alarm import Alarm, broken_draft


@dataclass(frozen=True)
class Counts:
    """Running totals: verify steps that had a draft, drafted tokens, accepted tokens.

    ``first``: drafts whose first token was accepted; where an engine does not tell places, all accepted tokens, which
    are at least as many.
    """

    drafts: float = 0
    draft_tokens: float = 0
    accepted_tokens: float = 0
    first: float = 0

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            self.drafts - other.drafts,
            self.draft_tokens - other.draft_tokens,
            self.accepted_tokens - other.accepted_tokens,
            self.first - other.first,
        )

    def __add__(self, other: Counts) -> Counts:
        return self - (Counts() - other)

    def line(self) -> str:
        """Acceptance rate = accepted / drafted; mean acceptance length = 1 + accepted / drafts."""
        rate = self.accepted_tokens / self.draft_tokens if self.draft_tokens else math.nan
        length = 1 + self.accepted_tokens / self.drafts
        return (
            f"acceptance rate {rate:.3f}, mean acceptance length {length:.2f} "
            f"({self.drafts:.0f} drafts, {self.draft_tokens:.0f} drafted, {self.accepted_tokens:.0f} accepted)"
        )


class AcceptanceReader:
    """Reads one engine's ``/metrics``; `line` says what happened since the call before.

    vLLM: counters, summed over its engines, window by window. SGLang: gauges of its own last interval. TensorRT-LLM:
    iteration statistics, which a read takes away: nobody else may read them at the same time.
    """

    def __init__(self, engine: str, url: str) -> None:
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=10, follow_redirects=True)
        self._tell = {"vllm": self._vllm, "sglang": self._sglang, "trtllm": self._trtllm}[engine]
        self._before = Counts()
        self._total = Counts()

    def close(self) -> None:
        self._client.close()

    def line(self) -> str | None:
        """One line for the user, None where nothing was drafted since; a failed read is said, not raised."""
        try:
            answer = self._client.get("/metrics")
            answer.raise_for_status()
            return self._tell(answer)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            return f"acceptance unknown: {self._client.base_url}/metrics: {type(error).__name__} {error}".rstrip()

    def alarm(self, method: str) -> Alarm | None:
        """The alarm about the draft of ``method``, by all that was read (`specctl.planning.alarm`)."""
        drafts, first = round(self._total.drafts), round(self._total.first)
        return broken_draft(method, drafts, min(drafts, first))

    def total_line(self) -> str | None:
        """The whole run, where the engine counts drafted tokens."""
        return self._total.line() if self._total.draft_tokens else None

    def _window(self, now: Counts) -> str | None:
        window, self._before = now - self._before, now
        # A counter that fell belongs to an engine that began anew.
        window = now if window.drafts < 0 else window
        self._total += window
        return window.line() if window.drafts else None

    def _vllm(self, answer: httpx.Response) -> str | None:
        page = _page(answer)
        if "drafts" not in page.counts:
            return None
        if page.missing:
            raise ValueError(f"it lacks {', '.join(page.missing)}")
        drafts, drafted, accepted = (page.counts[name] for name in COUNTS)
        return self._window(Counts(drafts, drafted, accepted, page.per_position.get(0, accepted)))

    def _sglang(self, answer: httpx.Response) -> str | None:
        page = _page(answer)
        length, rate = page.gauge("accept_length"), page.gauge("accept_rate")
        if not length:
            return None
        self._judge_sglang(page.counts.get("verify_calls"), length)
        told = "unknown" if rate is None else f"{rate:.3f}"
        return f"acceptance rate {told}, mean acceptance length {length:.2f} (SGLang's last interval)"

    def _judge_sglang(self, calls: int | None, length: float) -> None:
        """It counts verify calls; how many tokens they accepted is known by the last interval's length alone."""
        if calls is None:
            return
        window = calls - self._before.drafts
        window = calls if window < 0 else window
        self._before = Counts(drafts=calls)
        self._total += Counts(drafts=window, first=window * (length - 1))

    def _trtllm(self, answer: httpx.Response) -> str | None:
        found = self._before
        iterations = answer.json()
        if not isinstance(iterations, list) or not all(isinstance(each, dict) for each in iterations):
            raise ValueError("not the list of iterations that was expected")
        for iteration in iterations:
            found += _iteration(iteration)
        return self._window(found)


def _iteration(iteration: dict[str, Any]) -> Counts:
    stats = iteration.get("specDecodingStats") or {}
    # Under attention data parallelism every rank repeats the figures of rank 0.
    if not stats or iteration.get("attentionDpRank", 0) != 0:
        return Counts()
    drafts, drafted, accepted = (
        stats[f"num{name}"] for name in ("RequestsWithDraftTokens", "DraftTokens", "AcceptedTokens")
    )
    return Counts(drafts, drafted, accepted, accepted)


def _page(answer: httpx.Response) -> Page:
    page = read_page(answer.text)
    if page is None:
        raise ValueError("not a page of metrics")
    return page
