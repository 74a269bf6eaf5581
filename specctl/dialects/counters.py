"""How each engine spells what it counts about drafting on its ``/metrics``.

Names and meanings: vLLM 0.31 (vllm/v1/spec_decode/metrics.py; `specctl serve` has the same), SGLang 0.5.22 (verify
calls and tokens are counted, acceptance is a gauge of the last interval). A series that is not there is unknown, never
zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

COUNTS = ("drafts", "draft_tokens", "accepted_tokens")
"""What vLLM counts: verify steps that had a draft, drafted tokens, accepted tokens."""

_VLLM = "vllm:spec_decode_num_"
_SGLANG_CALLS = "sglang:spec_verify_calls"
_TOKENS = {"vllm:generation_tokens": "vllm", "sglang:generation_tokens": "sglang"}
_GAUGES = {"sglang:spec_accept_length": "accept_length", "sglang:spec_accept_rate": "accept_rate"}
_Key = TypeVar("_Key")


@dataclass
class Page:
    """One reading of ``/metrics``, over all engines behind the port, one model's series only.

    ``families``: whose names are there (``vllm``, ``sglang``, ``specctl``). ``engines``: labels of the engines that
    count. ``counts``: those of `COUNTS` for vLLM, ``verify_calls`` for SGLang. ``per_position[i]``: drafts whose token
    at place i (0-based) was accepted. ``tokens``: generated ones, by family. ``gauges``: SGLang's ``accept_length`` and
    ``accept_rate``, one value a rank.
    """

    families: set[str] = field(default_factory=set)
    engines: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    per_position: dict[int, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, list[float]] = field(default_factory=dict)
    kv_cache_tokens: int | None = None

    @property
    def missing(self) -> list[str]:
        """Those of `COUNTS` that the page lacks."""
        return [name for name in COUNTS if name not in self.counts]

    def gauge(self, name: str) -> float | None:
        """The mean of a gauge over the ranks."""
        values = self.gauges.get(name)
        return sum(values) / len(values) if values else None


def read_page(text: str, model: str | None = None) -> Page | None:
    """A reading of the page; series of other models than ``model`` are left out. None where it is not such a page."""
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
    if not (drafting or name in _TOKENS or name in _GAUGES):
        return
    served = labels.get("model_name")
    page.models.update([served] if served else [])
    if model is not None and served not in (None, model):
        return
    if name in _TOKENS:
        _add(page.tokens, _TOKENS[name], value)
    elif name in _GAUGES:
        page.gauges.setdefault(_GAUGES[name], []).append(value)
    else:
        page.engines.add(labels.get("engine", labels.get("tp_rank", "0")))
        _count(page, name, labels, value)


def _count(page: Page, name: str, labels: dict[str, str], value: float) -> None:
    if name == _SGLANG_CALLS:
        _add(page.counts, "verify_calls", value)
    elif name == f"{_VLLM}accepted_tokens_per_pos":
        _add(page.per_position, int(labels.get("position", "-1")), value)
    elif name.removeprefix(_VLLM) in COUNTS:
        _add(page.counts, name.removeprefix(_VLLM), value)


def _add(counts: dict[_Key, int], key: _Key, value: float) -> None:
    counts[key] = counts.get(key, 0) + int(value)


def _kv_tokens(name: str, labels: dict[str, str], value: float) -> int | None:
    if name.startswith("sglang"):
        return int(value)
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(size) if blocks.isdigit() and size.isdigit() else None
