"""From records to the figures of a run, by the definitions that `specctl explain metrics` prints.

vLLM's bench client (TTFT, TPOT, E2EL, throughputs) and its counters mean the same by these words.
What was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, Any

from specctl.bench.intervals import mean_interval, ratio_interval
from specctl.bench.records import Block, Record

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


def std_ms(seconds: Iterable[float | None]) -> float | None:
    """Standard deviation (that of the values themselves, as numpy's) in milliseconds; None without values."""
    found = [1000 * value for value in seconds if value is not None]
    return pstdev(found) if found else None


def pooled(records: Iterable[Record]) -> SpecStats | None:
    """The sum of the requests' counters; None where no request brought any."""
    return _sum([record.stats for record in records if record.stats is not None])


def counters(blocks: Sequence[Block]) -> SpecStats | None:
    """The counters of a run: those of its requests, else those that the runtime told for whole blocks."""
    return pooled(finished(blocks)) or _sum([block.stats for block in blocks if block.stats is not None])


def _sum(found: Sequence[SpecStats]) -> SpecStats | None:
    return reduce(add, found) if found else None


def finished(blocks: Iterable[Block]) -> list[Record]:
    """The records of `blocks` that did not fail."""
    return [record for block in blocks for record in block.records if not record.failed]


def tokens_of(records: Iterable[Record]) -> int | None:
    """Output tokens of all records; None where that of one is unknown, or there are none."""
    counts = [record.num_tokens for record in records]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def output_throughput(blocks: Sequence[Block]) -> float | None:
    """Output tokens of finished requests per second of the blocks' durations, summed over the blocks."""
    return per_second(tokens_of(finished(blocks)), blocks)


def per_second(number: float | None, blocks: Sequence[Block]) -> float | None:
    """`number` a second of the blocks' durations."""
    duration = sum(block.duration_s for block in blocks)
    return number / duration if number and duration > 0 else None


COUNTS = ("num_verify_steps", "num_drafts", "num_draft_tokens", "num_accepted_tokens")
RATIOS = ("acceptance_rate", "mean_acceptance_length", "mean_acceptance_length_all_steps")
LISTS = ("acceptance_per_position", "conditional_acceptance_per_position", "acceptance_length_histogram")


def acceptance(stats: SpecStats | None) -> dict[str, Any]:
    """The acceptance part of a run: counts, ratios and per-position lists, all None without counters.

    A server's counters leave out what it does not count (vLLM: verify steps without a draft, the histogram).
    """
    if stats is None:
        return dict.fromkeys((*COUNTS, *RATIOS, *LISTS))
    found = {name: getattr(stats, name) for name in RATIOS}
    counts = {name: getattr(stats, name) for name in COUNTS}
    if stats.num_draft_tokens:
        counts |= {name: counts[name] or None for name in ("num_verify_steps", "num_drafts")}
    # A server without verify steps counted its drafts; with no draft at all the lists are empty, and known to be.
    lists = {name: getattr(stats, name) or ([] if not stats.num_draft_tokens else None) for name in LISTS}
    return counts | found | lists


def by_category(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Counts, acceptance length and TPOT of each category, in order of first appearance."""
    names = dict.fromkeys(record.job.prompt.category for record in records)
    return {name: _category([r for r in records if r.job.prompt.category == name]) for name in names}


def _category(records: Sequence[Record]) -> dict[str, Any]:
    stats = pooled(records)
    kept = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "mean_acceptance_length")
    counters = {name: None if stats is None else getattr(stats, name) for name in kept}
    return counters | {"tpot_ms": summary_ms(record.tpot_s for record in records)}


CONTEXT_EDGES = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


def context_bucket(tokens: int | None) -> str:
    """The bucket of a prompt of this length, as `256-511`."""
    if tokens is None:
        return "unknown"
    low = max((edge for edge in CONTEXT_EDGES if edge <= tokens), default=0)
    high = min((edge for edge in CONTEXT_EDGES if edge > tokens), default=None)
    return f"{low}+" if high is None else f"{low}-{high - 1}"


def by_context(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """The figures of `by_category`, by the length of the prompt; shortest first."""
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.num_prompt_tokens or 0):
        groups.setdefault(context_bucket(record.num_prompt_tokens), []).append(record)
    return {name: _category(found) for name, found in groups.items()}


def by_turn(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """The figures of `by_category` by turn (1: the first question), with the length of the prompts and TTFT; empty
    where every prompt is a single question.
    """
    numbers = sorted({record.job.turn for record in records})
    if numbers in ([], [0]):
        return {}
    found = {}
    for number in numbers:
        asked = [record for record in records if record.job.turn == number]
        lengths = [length for record in asked if (length := record.num_prompt_tokens) is not None]
        own = {"requests": len(asked), "mean_prompt_tokens": fmean(lengths) if lengths else None}
        found[str(number + 1)] = own | _category(asked) | {"ttft_ms": summary_ms(record.ttft_s for record in asked)}
    return found


def _cached(records: Sequence[Record]) -> int | None:
    """Prompt tokens that a server's prefix cache held; None where one request does not say."""
    told = [record.cached_tokens for record in records]
    return sum(count or 0 for count in told) if told and None not in told else None


def run_figures(blocks: Sequence[Block]) -> dict[str, Any]:
    """All figures of one runtime at one concurrency: the report's `runs` entry without name, k, spec, concurrency."""
    records = finished(blocks)
    outputs = tokens_of(records)
    prompts = [record.num_prompt_tokens for record in records]
    inputs = None if None in prompts else sum(number or 0 for number in prompts)
    times: dict[str, list[float | None]] = {
        "ttft": [record.ttft_s for record in records],
        "tpot": [record.tpot_s for record in records],
        "e2e": [record.e2e_s for record in records],
        "chunk_gap": [gap for record in records for gap in record.gaps_s],
    }
    return {
        "requests": len(records),
        "failed": sum(record.failed for block in blocks for record in block.records),
        **acceptance(counters(blocks)),
        "by_category": by_category(records),
        "by_context": by_context(records),
        "by_turn": by_turn(records),
        **{f"{name}_ms": summary_ms(values) for name, values in times.items()},
        "tpot_ms_ci": mean_interval([1000 * value for value in times["tpot"] if value is not None]),
        "output_throughput_ci": _throughput_interval(blocks),
        "std_ms": {name: std_ms(values) for name, values in times.items()},
        "input_tokens": inputs if records else None,
        "cached_input_tokens": _cached(records),
        "output_tokens": outputs,
        "output_throughput": per_second(outputs, blocks),
        "total_throughput": per_second(inputs + outputs, blocks) if outputs and inputs is not None else None,
        "duration_s": sum(block.duration_s for block in blocks) if blocks else None,
        **time_shares(blocks),
    }


def _throughput_interval(blocks: Sequence[Block]) -> list[float] | None:
    """The 95 % interval of `output_throughput`, blocks drawn with replacement."""
    known = [(tokens_of(finished([block])), block.duration_s) for block in blocks]
    pairs = [(float(tokens), duration) for tokens, duration in known if tokens is not None]
    return ratio_interval([tokens for tokens, _ in pairs], [duration for _, duration in pairs])


def time_shares(blocks: Sequence[Block]) -> dict[str, float | None]:
    """Shares of decoding time spent drafting and verifying (the target's forward and the judging); None: not told."""
    told = [(block.draft_s, block.verify_s) for block in blocks]
    pairs = [(draft, verify) for draft, verify in told if draft is not None and verify is not None]
    spent = sum(map(sum, pairs))
    if not pairs or spent <= 0:
        return {"draft_time_share": None, "verify_time_share": None}
    share = sum(draft for draft, _ in pairs) / spent
    return {"draft_time_share": share, "verify_time_share": 1 - share}


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
    """The share of `records` whose output ends with one of `token_ids` (the EOS tokens); None without records.

    Without known tokens (a server): of those that ended by themselves.
    """
    if not records:
        return None
    if not token_ids:
        return fmean(record.finish_reason == "stop" for record in records)
    return fmean(bool(record.token_ids) and record.token_ids[-1] in token_ids for record in records)
