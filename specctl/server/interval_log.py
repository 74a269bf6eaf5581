"""The log lines of every ten seconds: load and throughput, and vLLM's line about drafting."""

from __future__ import annotations

import logging
import time

from specctl.runtime.stats import SpecStats
from specctl.server.bridge import Bridge
from specctl.server.metrics import ServerMetrics, alarm_of

log = logging.getLogger("specctl.server")


class IntervalLog:
    """Writes what happened since the last time, if anything; once a warning where the drafts look broken."""

    def __init__(self, bridge: Bridge, metrics: ServerMetrics, method: str = "") -> None:
        self._method = method
        self._warned = False
        self._bridge = bridge
        self._metrics = metrics
        self._stats = bridge.snapshot.stats
        self._tokens = metrics.token_counts()
        self._time = time.monotonic()

    def write(self) -> None:
        """At most two lines."""
        snapshot, tokens, now = self._bridge.snapshot, self._metrics.token_counts(), time.monotonic()
        window, seconds = snapshot.stats - self._stats, max(now - self._time, 1e-9)
        prompt, generated = (new - old for new, old in zip(tokens, self._tokens, strict=True))
        self._stats, self._tokens, self._time = snapshot.stats, tokens, now
        if self._bridge.inside or prompt or generated:
            counters = snapshot.counters
            found = counters.prefix_hits / counters.prefix_queries if counters.prefix_queries else 0.0
            log.info(
                "Prompt throughput: %.1f tokens/s, Generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d "
                "reqs, KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
                prompt / seconds,
                generated / seconds,
                snapshot.running,
                self._bridge.waiting,
                100 * snapshot.kv_usage,
                100 * found,
            )
        if window.num_draft_tokens:
            log.info("%s", drafting_line(window, seconds))
            self._warn(snapshot.stats)

    def _warn(self, stats: SpecStats) -> None:
        alarm = None if self._warned else alarm_of(stats, self._method)
        if alarm is not None:
            self._warned = True
            log.warning("ALARM: %s", alarm.text)


def drafting_line(window: SpecStats, seconds: float) -> str:
    """The line for the counts of a window that lasted `seconds`."""
    positions = ", ".join(f"{rate:.3f}" for rate in window.acceptance_per_position)
    seconds = max(seconds, 1e-9)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {window.mean_acceptance_length or 0:.2f}, "
        f"Accepted throughput: {window.num_accepted_tokens / seconds:.2f} tokens/s, "
        f"Drafted throughput: {window.num_draft_tokens / seconds:.2f} tokens/s, "
        f"Accepted: {window.num_accepted_tokens} tokens, Drafted: {window.num_draft_tokens} tokens, "
        f"Per-position acceptance rate: {positions}, "
        f"Avg Draft acceptance rate: {100 * (window.acceptance_rate or 0):.1f}%"
    )
