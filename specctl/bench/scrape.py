"""A server's own counters about drafting, from `/metrics` before and after.

Names and meanings: vLLM 0.31 (vllm/v1/spec_decode/metrics.py; `specctl serve` has the same), SGLang 0.5.22 (its
`/metrics` counts verify calls and tokens only). A series that is not there is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specctl.runtime import SpecStats

_VLLM = "vllm:spec_decode_num_"
_SGLANG_CALLS = "sglang:spec_verify_calls"
_TOKENS = {"vllm:generation_tokens": "vllm", "sglang:generation_tokens": "sglang"}
NO_COUNTERS = "the server exports no counters about drafting"
_COUNTS = ("drafts", "draft_tokens", "accepted_tokens")


@dataclass
class Page:
    """One reading of `/metrics`, over all engines behind the port, one model's series only.

    `families`: whose names are there (`vllm`, `sglang`, `specctl`). `engines`: labels of the engines that count.
    `counts`: `drafts`, `draft_tokens`, `accepted_tokens` of vLLM, `verify_calls` of SGLang. `tokens`: generated ones.
    """

    families: set[str] = field(default_factory=set)
    engines: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    per_position: dict[int, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    kv_cache_tokens: int | None = None

    def add(self, name: str, value: float) -> None:
        """Count a sample under this name."""
        self.counts[name] = self.counts.get(name, 0) + int(value)


@dataclass(frozen=True)
class Difference:
    """What the server counted between two readings. `stats` None: unknown, `notes` say why."""

    stats: SpecStats | None
    notes: tuple[str, ...]
    tokens: int | None


def read_page(text: str, model: str | None) -> Page | None:
    """A reading of the page; series of other models than `model` are left out. None where it is not such a page."""
    from prometheus_client.parser import text_string_to_metric_families

    page = Page()
    try:
        for family in text_string_to_metric_families(text):
            prefix, colon, _ = family.name.partition(":")
            page.families.update([prefix] if colon else [])
            for sample in family.samples:
                _take(page, sample.name.removesuffix("_total"), sample.labels, sample.value, model)
    except ValueError:
        return None
    return page


def _take(page: Page, name: str, labels: dict[str, str], value: float, model: str | None) -> None:
    if name in ("vllm:cache_config_info", "sglang:max_total_num_tokens"):
        page.kv_cache_tokens = _kv_tokens(name, labels, value)
    drafting = name.startswith(_VLLM) or name == _SGLANG_CALLS
    if not (drafting or name in _TOKENS):
        return
    served = labels.get("model_name")
    page.models.update([served] if served else [])
    if model is not None and served not in (None, model):
        return
    if name in _TOKENS:
        family = _TOKENS[name]
        page.tokens[family] = page.tokens.get(family, 0) + int(value)
        return
    page.engines.add(labels.get("engine", labels.get("tp_rank", "0")))
    if name == f"{_VLLM}accepted_tokens_per_pos":
        position = int(labels.get("position", "-1"))
        page.per_position[position] = page.per_position.get(position, 0) + int(value)
    elif name == _SGLANG_CALLS:
        page.add("verify_calls", value)
    elif name.removeprefix(_VLLM) in _COUNTS:
        page.add(name.removeprefix(_VLLM), value)


def _kv_tokens(name: str, labels: dict[str, str], value: float) -> int | None:
    if name.startswith("sglang"):
        return int(value)
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(size) if blocks.isdigit() and size.isdigit() else None


def difference(before: Page | None, after: Page | None, requests: int) -> Difference:
    """The counters between two readings, `requests` of ours having finished in between."""
    if before is None or after is None:
        return Difference(None, ("acceptance unknown: /metrics could not be read",), None)
    problem = _problem(before, after)
    if problem is not None:
        return Difference(None, (problem,), None)
    changed = {name: after.counts[name] - before.counts.get(name, 0) for name in after.counts}
    tokens = {name: after.tokens[name] - before.tokens.get(name, 0) for name in after.tokens}
    notes = []
    if len(after.engines) > 1:
        notes.append(f"the counters of {len(after.engines)} engines behind this port are added up")
    if "verify_calls" in changed:
        stats = _from_calls(changed["verify_calls"], tokens.get("sglang"), requests)
        notes.append("accepted tokens follow from tokens and verify calls; blocks that a stop cuts make them too few")
        return Difference(stats, tuple(notes), tokens.get("sglang"))
    places = {place: count - before.per_position.get(place, 0) for place, count in after.per_position.items()}
    return Difference(_from_counts(changed, places), tuple(notes), tokens.get("vllm"))


def _problem(before: Page, after: Page) -> str | None:
    """Why the two readings say nothing, if so."""
    if "verify_calls" in after.counts and "drafts" in after.counts:
        return "acceptance unknown: /metrics has the counters of two kinds of engine, vLLM's and SGLang's"
    if not after.counts:
        return f"acceptance unknown: {NO_COUNTERS}"
    if not {"verify_calls"} & set(after.counts) and not set(_COUNTS) <= set(after.counts):
        return f"acceptance unknown: /metrics lacks {', '.join(sorted(set(_COUNTS) - set(after.counts)))}"
    fell = [name for name, value in after.counts.items() if value < before.counts.get(name, 0)]
    if fell or before.engines - after.engines:
        return "acceptance unknown: a counter of /metrics went down, so the server was restarted meanwhile"
    return None


def _from_counts(changed: dict[str, int], places: dict[int, int]) -> SpecStats:
    from specctl.runtime import SpecStats

    length = max(places, default=-1) + 1
    return SpecStats(
        num_drafts=changed["drafts"],
        num_draft_tokens=changed["draft_tokens"],
        num_accepted_tokens=changed["accepted_tokens"],
        accepted_per_position=[places.get(place, 0) for place in range(length)] if changed["drafts"] else [],
    )


def _from_calls(calls: int, tokens: int | None, requests: int) -> SpecStats | None:
    """Each verify call emits one token of the target's and what was accepted; each request got one from its prefill."""
    from specctl.runtime import SpecStats

    if tokens is None or calls <= 0:
        return None
    accepted = max(0, tokens - requests - calls)
    return SpecStats(num_verify_steps=calls, num_drafts=calls, num_accepted_tokens=accepted)


def from_histogram(histogram: Iterable[int], drafted: int, verify_steps: int = 0) -> SpecStats:
    """Counters of one request from its histogram (index: drafts accepted in a step) and its drafted tokens."""
    from specctl.runtime import SpecStats

    counts = list(histogram)
    return SpecStats(
        num_verify_steps=verify_steps,
        num_drafts=sum(counts),
        num_draft_tokens=drafted,
        num_accepted_tokens=sum(place * count for place, count in enumerate(counts)),
        accepted_per_position=[sum(counts[place + 1 :]) for place in range(len(counts) - 1)],
        acceptance_length_histogram=counts,
    )
