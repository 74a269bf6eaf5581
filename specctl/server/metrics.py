"""`/metrics`: vLLM's names with vLLM's meanings, so that existing boards work.

Counters of drafting are not kept here: they are read from the engine's own statistics at each scrape, so the two cannot
differ. Source of names and meanings: vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py (0.31.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from specctl.planning.alarm import Alarm, broken_draft, first_position
from specctl.runtime.stats import SpecStats
from specctl.server.bridge import Bridge, Entry, Observer

_LABELS = ("model_name", "engine")
_REASONS = ("stop", "length", "abort", "error")
# vLLM's buckets begin at 10 ms for a token; small models are faster than that.
_PER_TOKEN_S = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1,
    2.5,
    5,
    10,
)
_FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160)
_WHOLE_S = (0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
_INTERVALS = {
    "queue": "Time from arrival to the slot.",
    "prefill": "Time from the slot to the first token.",
    "decode": "Time from the first token to the last.",
    "inference": "Time from the slot to the last token.",
}


class ServerMetrics(Observer):
    """Counts what passes the bridge, in a registry of its own."""

    def __init__(self, model_name: str) -> None:
        self.registry = CollectorRegistry()
        self._values = (model_name, "0")
        self._counts = [0, 0]
        ProcessCollector(registry=self.registry)
        self._prompt_tokens = self._counter("prompt_tokens", "Number of prefill tokens processed.")
        self._cached_tokens = self._counter("prompt_tokens_cached", "Number of cached prompt tokens.")
        self._generation_tokens = self._counter("generation_tokens", "Number of generation tokens processed.")
        self._ttft = self._histogram("time_to_first_token_seconds", "Time to first token.", _FIRST_TOKEN_S)
        self._gap = self._histogram(
            "inter_token_latency_seconds",
            "Time between two outputs of a request.",
            _PER_TOKEN_S,
        )
        self._tpot = self._histogram(
            "request_time_per_output_token_seconds", "Mean time per output token after the first.", _PER_TOKEN_S
        )
        self._e2e = self._histogram("e2e_request_latency_seconds", "Time from arrival to the last token.", _WHOLE_S)
        self._intervals = {
            name: self._histogram(f"request_{name}_time_seconds", text, _WHOLE_S) for name, text in _INTERVALS.items()
        }
        self._prompt_sizes = self._histogram("request_prompt_tokens", "Prompt tokens of a request.", _SIZES)
        self._answer_sizes = self._histogram("request_generation_tokens", "New tokens of a request.", _SIZES)
        self._largest = self._histogram(
            "request_max_num_generation_tokens", "New tokens of a prompt's longest answer.", _SIZES
        )
        self._limits = self._histogram("request_params_max_tokens", "max_tokens of a request.", _SIZES)
        self._choices = self._histogram("request_params_n", "n of a request.", (1, 2, 5, 10, 20))
        self._success = Counter(
            "vllm:request_success",
            "Count of finished requests.",
            (*_LABELS, "finished_reason"),
            registry=self.registry,
        )
        self._refused = Counter(
            "specctl:requests_refused", "HTTP requests answered with an error.", ("status",), registry=self.registry
        )
        for reason in _REASONS:
            self._success.labels(*self._values, reason)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, _LABELS, registry=self.registry).labels(*self._values)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        found = Histogram(f"vllm:{name}", text, _LABELS, registry=self.registry, buckets=buckets)
        return found.labels(*self._values)

    def watch(
        self, bridge: Bridge, num_speculative_tokens: int, speculative: bool, lossless: bool, method: str = ""
    ) -> None:
        """Read the engine's own numbers at each scrape; those about drafting only where it is configured. ``method``:
        how drafts are made, for the alarm about a broken one; empty where that is not to be judged.
        """
        k = num_speculative_tokens if speculative else None
        self.registry.register(_EngineCollector(bridge, self._values, k, lossless, method))

    def tokens(self, entry: Entry, count: int, now: float) -> None:
        """Count new tokens; the prompt counts with the first ones."""
        self._generation_tokens.inc(count)
        self._counts[1] += count
        if entry.last_token is None:
            prompt = len(entry.request.prompt_token_ids)
            self._prompt_tokens.inc(prompt)
            self._cached_tokens.inc(entry.num_cached)
            self._counts[0] += prompt
            self._ttft.observe(max(0.0, now - entry.arrival))
        else:
            # Between outputs, not tokens: a step that accepted drafts is one gap; the other histogram is per token.
            self._gap.observe(max(0.0, now - entry.last_token))

    def finished(self, entry: Entry, reason: str, now: float) -> None:
        """Count an end. Requests that were aborted or failed have no latency: nobody waited for their end."""
        self._success.labels(*self._values, reason).inc()
        siblings = entry.stream.siblings(entry)
        if not any(each.request.id in entry.stream.open for each in siblings):
            self._largest.observe(max(each.num_tokens for each in siblings))
        if reason not in ("stop", "length") or entry.first_token is None or entry.last_token is None:
            return
        self._e2e.observe(max(0.0, now - entry.arrival))
        self._prompt_sizes.observe(len(entry.request.prompt_token_ids))
        self._answer_sizes.observe(entry.num_tokens)
        self._limits.observe(entry.request.sampling.max_tokens)
        started = entry.arrival if entry.started is None else entry.started
        spans = {
            "queue": (entry.arrival, started),
            "prefill": (started, entry.first_token),
            "decode": (entry.first_token, entry.last_token),
            "inference": (started, entry.last_token),
        }
        for name, (begin, end) in spans.items():
            self._intervals[name].observe(max(0.0, end - begin))
        if entry.num_tokens > 1:
            self._tpot.observe(max(0.0, entry.last_token - entry.first_token) / (entry.num_tokens - 1))

    def token_counts(self) -> tuple[int, int]:
        """Prompt and new tokens so far."""
        return self._counts[0], self._counts[1]

    def asked(self, n: int) -> None:
        """Count a call for ``n`` answers to each of its prompts."""
        self._choices.observe(n)

    def refused(self, status: int) -> None:
        """Count an HTTP answer of 400 or above."""
        self._refused.labels(str(status)).inc()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The page in the format that the `Accept` header prefers, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _EngineCollector(Collector):
    """The engine's numbers as they are now. `k` None: no speculation configured, so no counters about it."""

    def __init__(
        self, bridge: Bridge, values: tuple[str, str], k: int | None, lossless: bool, method: str = ""
    ) -> None:
        self._method = method
        self._bridge = bridge
        self._values = values
        self._k = k
        self._lossless = lossless

    def collect(self) -> Iterator[Metric]:
        """Gauges, then counters."""
        snapshot = self._bridge.snapshot
        yield self._gauge("num_requests_running", "Requests in the running batch.", snapshot.running)
        yield self._gauge("num_requests_waiting", "Requests waiting for a slot.", self._bridge.waiting)
        yield self._waiting_by_reason(self._bridge.waiting)
        yield self._gauge("kv_cache_usage_perc", "KV-cache usage; 1 means 100 percent.", snapshot.kv_usage)
        counters = snapshot.counters
        yield self._counter("num_preemptions", "Requests that made room for others.", counters.preemptions)
        yield self._counter("prefix_cache_queries", "Tokens looked up in the prefix cache.", counters.prefix_queries)
        yield self._counter("prefix_cache_hits", "Tokens found in the prefix cache.", counters.prefix_hits)
        failures = CounterMetricFamily(
            "specctl:proposer_failures",
            "Requests that went on without drafts: the proposer failed.",
            labels=_LABELS,
        )
        failures.add_metric(self._values, counters.proposer_failures)
        yield failures
        if self._k is not None:
            yield from self._drafting(snapshot.stats, self._k)

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", text, labels=_LABELS)
        family.add_metric(self._values, value)
        return family

    def _waiting_by_reason(self, waiting: int) -> Metric:
        """Here a request waits for a slot or for room in the cache, and for nothing else."""
        family = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason", "Requests waiting, by reason.", labels=(*_LABELS, "reason")
        )
        for reason, count in (("capacity", waiting), ("deferred", 0)):
            family.add_metric((*self._values, reason), count)
        return family

    def _drafting(self, stats: SpecStats, k: int) -> Iterator[Metric]:
        yield self._counter("spec_decode_num_drafts", "Number of spec decoding drafts.", stats.num_drafts)
        yield self._counter("spec_decode_num_draft_tokens", "Number of draft tokens.", stats.num_draft_tokens)
        accepted = stats.num_accepted_tokens
        yield self._counter("spec_decode_num_accepted_tokens", "Number of accepted tokens.", accepted)
        kept = GaugeMetricFamily(
            "specctl:spec_decode_lossless", "Whether answers follow the target's distribution: 1 or 0.", labels=_LABELS
        )
        kept.add_metric(self._values, float(self._lossless))
        yield kept
        broken = GaugeMetricFamily(
            "specctl:spec_decode_draft_broken",
            "Whether the draft is accepted no more often than chance would have it: 1 or 0.",
            labels=_LABELS,
        )
        broken.add_metric(self._values, float(alarm_of(stats, self._method) is not None))
        yield broken
        family = CounterMetricFamily(
            "vllm:spec_decode_num_accepted_tokens_per_pos",
            "Accepted tokens per draft position.",
            labels=(*_LABELS, "position"),
        )
        counts = stats.accepted_per_position
        for position in range(max(k, len(counts))):
            value = counts[position] if position < len(counts) else 0
            family.add_metric((*self._values, str(position)), value)
        yield family

    def _counter(self, name: str, text: str, value: int) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", text, labels=_LABELS)
        family.add_metric(self._values, value)
        return family


def alarm_of(stats: SpecStats, method: str) -> Alarm | None:
    """The alarm about the draft whose counters those are."""
    first = first_position(stats.num_drafts, stats.acceptance_per_position if stats.num_drafts else None)
    return broken_draft(method, *first) if first else None
