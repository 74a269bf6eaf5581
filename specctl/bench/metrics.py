"""From records to the figures of a run, by the definitions that `specctl explain metrics` prints.

vLLM's bench client (TTFT, TPOT, E2EL, throughputs) and its counters mean the same by these words.
What was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from specctl.bench.load import Block, Record

if TYPE_CHECKING:
    from specctl.runtime import SpecStats

Summary = dict[str, float | None]


def percentile(values: Sequence[float], percent: float) -> float:
    """The `percent` percentile of `values` (not empty), interpolated linearly between neighbours as numpy does."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def summary_ms(seconds: Iterable[float | None]) -> Summary:
    """Mean, median and p99 in milliseconds over the values that are there."""
    found = [1000 * value for value in seconds if value is not None]
    if not found:
        return {"mean": None, "median": None, "p99": None}
    return {"mean": fmean(found), "median": median(found), "p99": percentile(found, 99)}


def pooled(records: Iterable[Record]) -> SpecStats | None:
    """The sum of the requests' counters; None where no request brought any."""
    found = [record.stats for record in records if record.stats is not None]
    return reduce(add, found) if found else None


def finished(blocks: Iterable[Block]) -> list[Record]:
    """The records of `blocks` that did not fail."""
    return [record for block in blocks for record in block.records if not record.failed]


def output_throughput(blocks: Sequence[Block]) -> float | None:
    """Output tokens of finished requests per second of the blocks' durations, summed over the blocks."""
    return _per_second(sum(len(record.token_ids) for record in finished(blocks)), blocks)


def _per_second(tokens: int, blocks: Sequence[Block]) -> float | None:
    duration = sum(block.duration_s for block in blocks)
    return tokens / duration if tokens and duration > 0 else None


COUNTS = ("num_verify_steps", "num_drafts", "num_draft_tokens", "num_accepted_tokens")
RATIOS = ("acceptance_rate", "mean_acceptance_length", "mean_acceptance_length_all_steps")
LISTS = ("acceptance_per_position", "conditional_acceptance_per_position", "acceptance_length_histogram")


def acceptance(stats: SpecStats | None) -> dict[str, Any]:
    """The acceptance part of a run: counts, ratios and per-position lists, all None without counters."""
    return {name: None if stats is None else getattr(stats, name) for name in (*COUNTS, *RATIOS, *LISTS)}


def by_category(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Counts, acceptance length and TPOT of each category, in order of first appearance."""
    names = dict.fromkeys(record.job.prompt.category for record in records)
    return {name: _category([r for r in records if r.job.prompt.category == name]) for name in names}


def _category(records: Sequence[Record]) -> dict[str, Any]:
    stats = pooled(records)
    kept = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "mean_acceptance_length")
    counters = {name: None if stats is None else getattr(stats, name) for name in kept}
    return counters | {"tpot_ms": summary_ms(record.tpot_s for record in records)}


def run_figures(blocks: Sequence[Block]) -> dict[str, Any]:
    """All figures of one runtime at one concurrency: the report's `runs` entry without name, k, spec, concurrency."""
    records = finished(blocks)
    outputs = sum(len(record.token_ids) for record in records)
    inputs = sum(len(record.job.prompt.token_ids) for record in records)
    return {
        "requests": len(records),
        "failed": sum(record.failed for block in blocks for record in block.records),
        **acceptance(pooled(records)),
        "by_category": by_category(records),
        "ttft_ms": summary_ms(record.ttft_s for record in records),
        "tpot_ms": summary_ms(record.tpot_s for record in records),
        "e2e_ms": summary_ms(record.e2e_s for record in records),
        "output_tokens": outputs if records else None,
        "output_throughput": _per_second(outputs, blocks),
        "total_throughput": _per_second(inputs + outputs if outputs else 0, blocks),
        "duration_s": sum(block.duration_s for block in blocks) if blocks else None,
    }


def repeated_4gram_share(token_ids: Sequence[int]) -> float | None:
    """The share of an output's 4-grams that already stood earlier in that output; None below four tokens."""
    grams = [tuple(token_ids[start : start + 4]) for start in range(len(token_ids) - 3)]
    return (len(grams) - len(set(grams))) / len(grams) if grams else None


def repetition(records: Iterable[Record]) -> dict[str, dict[str, float | None]]:
    """Largest and mean `repeated_4gram_share` of each category's outputs."""
    shares: dict[str, list[float]] = {}
    for record in records:
        share = repeated_4gram_share(record.token_ids)
        shares.setdefault(record.job.prompt.category, []).extend([] if share is None else [share])
    return {
        name: {"max": max(found), "mean": fmean(found)} if found else {"max": None, "mean": None}
        for name, found in shares.items()
    }


def ended_by(records: Sequence[Record], token_ids: frozenset[int]) -> float | None:
    """The share of `records` whose output ends with one of `token_ids` (the EOS tokens); None without records."""
    if not records:
        return None
    return fmean(bool(record.token_ids) and record.token_ids[-1] in token_ids for record in records)
