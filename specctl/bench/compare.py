"""A candidate against the baseline: paired speed-up with its interval, cost and break-even, keep or drop.

A pair is one prompt in one repeat, run by both at the same concurrency within the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from specctl.bench.metrics import context_bucket, counters, finished, output_throughput
from specctl.bench.noise import NO_NOISE, BlockNoise, student
from specctl.bench.outputs import NOT_CHECKED, Outputs, Pair, TieRule, compare_outputs
from specctl.bench.records import Block, Record

CONFIDENCE = 0.95
RESAMPLES = 2000
MIN_EFFECT = 0.02
KEEP, DROP, WITHIN_NOISE = "keep", "drop", "within noise"


def pairs(baseline: Sequence[Block], candidate: Sequence[Block]) -> list[Pair]:
    """The requests that both finished, matched by repeat, prompt and turn."""
    known = {record.job.key: record for record in finished(baseline)}
    found = ((known.get(record.job.key), record) for record in finished(candidate))
    return [(base, record) for base, record in found if base is not None]


def tpot_speedup(matched: Sequence[Pair]) -> float | None:
    """Mean TPOT of the baseline / mean TPOT of the candidate, over pairs with two tokens or more on both sides."""
    timed = _timed(matched)
    slow, fast = (sum(times[side] for _, times in timed) for side in (0, 1))
    return slow / fast if timed and fast > 0 else None


def _timed(matched: Sequence[Pair]) -> list[tuple[Pair, tuple[float, float]]]:
    """Pairs with both TPOTs, in seconds."""
    found = []
    for base, other in matched:
        if base.tpot_s is not None and other.tpot_s is not None:
            found.append(((base, other), (base.tpot_s, other.tpot_s)))
    return found


def speedup_interval(
    matched: Sequence[Pair],
    seed: int,
    confidence: float = CONFIDENCE,
    noise: BlockNoise = NO_NOISE,
    num_blocks: int = 1,
) -> list[float] | None:
    """The interval of `tpot_speedup`, 95 % unless told otherwise; None with fewer than two pairs.

    Prompts are drawn with replacement (bootstrap, 2000 seeded draws), a prompt with all its repeats, the pair staying a
    pair. They are drawn within their category, since the mix of categories is chosen, not sampled; with a category of
    one prompt, from all of them, since one prompt says nothing of its category's spread. The spread of the logarithm,
    with Student's factor for few prompts (Hesterberg 2015), and the `noise` of `num_blocks` blocks add up in squares.
    """
    import numpy as np

    timed = _timed(matched)
    speedup = tpot_speedup(matched)
    if len(timed) < 2 or speedup is None:
        return None
    sizes, rows = _rows([base for (base, _), _ in timed])
    slow, fast = (np.zeros(len(rows)) for _ in range(2))
    for (base, _), times in timed:
        slow[rows[base.job.index]] += times[0]
        fast[rows[base.job.index]] += times[1]
    random = np.random.default_rng(seed)
    drawn = np.concatenate([random.multinomial(n, [1 / n] * n, size=RESAMPLES) for n in sizes], axis=1)
    above, below = drawn @ slow, drawn @ fast
    spread = float(np.log(above[below > 0] / below[below > 0]).std())
    freedom = len(rows) - len(sizes)
    tail = (1 + confidence) / 2
    prompts = student(tail, freedom) * spread * (len(rows) / max(1, freedom)) ** 0.5
    blocks = student(tail, noise.freedom) * (noise.variance / max(1, num_blocks)) ** 0.5
    width = exp(min((prompts**2 + blocks**2) ** 0.5, 50.0))
    return [speedup / width, speedup * width]


def _rows(records: Sequence[Record]) -> tuple[list[int], dict[int, int]]:
    """Prompts in each group to draw from; the row of each prompt, group after group."""
    categories: dict[str, dict[int, None]] = {}
    for record in records:
        categories.setdefault(record.job.prompt.category, {})[record.job.index] = None
    rows = {index: row for row, index in enumerate(index for group in categories.values() for index in group)}
    sizes = [len(group) for group in categories.values()]
    return sizes if min(sizes) > 1 else [sum(sizes)], rows


@dataclass(frozen=True)
class Comparison:
    """One candidate against the baseline at one concurrency; fields as in the report."""

    baseline: str
    candidate: str
    k: int | None
    concurrency: int
    tpot_speedup: float | None
    tpot_speedup_ci: list[float] | None
    throughput_ratio: float | None
    break_even_acceptance_length: float | None
    by_category: dict[str, float | None]
    outputs: Outputs
    by_context: dict[str, float | None]
    by_turn: dict[str, float | None]
    confidence: float
    break_even_basis: str | None
    cost_per_accepted_token_ms: float | None
    baseline_tpot_ms: float | None
    pairs: int

    @property
    def decision(self) -> str | None:
        """`keep`, `drop` or `within noise`; None where it was not measured.

        Keep: the interval lies above 1, the effect is at least 2 %, and throughput does not fall. Drop: the interval
        lies below 1 with an effect of at least 2 %, or TPOT gets better and throughput falls by 2 % or more.
        """
        ends = self.tpot_speedup_ci
        if self.tpot_speedup is None or ends is None or self.throughput_ratio is None:
            return None
        if ends[0] > 1 and self.tpot_speedup >= 1 + MIN_EFFECT:
            if self.throughput_ratio >= 1:
                return KEEP
            return DROP if self.throughput_ratio <= 1 - MIN_EFFECT else WITHIN_NOISE
        if ends[1] < 1 and self.tpot_speedup <= 1 - MIN_EFFECT:
            return DROP
        return WITHIN_NOISE

    @property
    def keep(self) -> bool | None:
        """Whether the draft pays here."""
        return None if self.decision is None else self.decision == KEEP

    def as_dict(self) -> dict[str, Any]:
        """The `comparison` entry of the report."""
        first = self.outputs.first
        return {
            "baseline": self.baseline,
            "candidate": self.candidate,
            "k": self.k,
            "concurrency": self.concurrency,
            "pairs": self.pairs,
            "tpot_speedup": self.tpot_speedup,
            "throughput_ratio": self.throughput_ratio,
            "tpot_speedup_ci": self.tpot_speedup_ci,
            "confidence": self.confidence,
            "break_even_acceptance_length": self.break_even_acceptance_length,
            "break_even_basis": self.break_even_basis,
            "cost_per_accepted_token_ms": self.cost_per_accepted_token_ms,
            "baseline_tpot_ms": self.baseline_tpot_ms,
            "by_category": {name: {"tpot_speedup": speedup} for name, speedup in self.by_category.items()},
            "by_context": {name: {"tpot_speedup": speedup} for name, speedup in self.by_context.items()},
            "by_turn": {name: {"tpot_speedup": speedup} for name, speedup in self.by_turn.items()},
            "outputs": self.outputs.status,
            "outputs_checked": self.outputs.checked,
            "differences": self.outputs.counts,
            "first_divergence": None if first is None else first.as_dict(),
            "keep": self.keep,
            "decision": self.decision,
        }


def compare(
    names: tuple[str, str],
    k: int | None,
    concurrency: int,
    blocks: tuple[Sequence[Block], Sequence[Block]],
    seed: int,
    ties: TieRule | None,
    levels: int = 1,
    noise: BlockNoise = NO_NOISE,
) -> Comparison:
    """Compare the blocks of two runtimes, baseline first, at one level. `ties` None: outputs are not checked.

    `levels`: how many levels are decided on in one run. The intervals are widened for them (Bonferroni), so that all of
    them together are wrong no more often than one alone. `noise`: that of the candidate's blocks.
    """
    # Turns give each runtime one block; after Ctrl-C the last turn may have reached only some of them.
    common = min(len(blocks[0]), len(blocks[1]))
    baseline, candidate = (list(side[:common]) for side in blocks)
    matched = pairs(baseline, candidate)
    speedup = tpot_speedup(matched)
    length, basis = _length(candidate)
    confidence = 1 - (1 - CONFIDENCE) / levels
    timed = [times for _, times in _timed(matched)]
    base_ms, other_ms = (1000 * sum(t[side] for t in timed) / len(timed) if timed else None for side in (0, 1))
    return Comparison(
        baseline=names[0],
        candidate=names[1],
        k=k,
        concurrency=concurrency,
        pairs=len(timed),
        tpot_speedup=speedup,
        tpot_speedup_ci=speedup_interval(matched, seed, confidence, noise, common),
        confidence=confidence,
        throughput_ratio=_ratio(output_throughput(candidate), output_throughput(baseline)),
        break_even_acceptance_length=_ratio(length, speedup),
        break_even_basis=basis,
        cost_per_accepted_token_ms=_cost(length, base_ms, other_ms),
        baseline_tpot_ms=base_ms,
        by_category=_grouped(matched, lambda record: record.job.prompt.category),
        by_turn=_by_turn(matched),
        by_context=_grouped(matched, lambda record: context_bucket(record.num_prompt_tokens)),
        outputs=Outputs(NOT_CHECKED) if ties is None else compare_outputs(matched, ties),
    )


def _length(candidate: Sequence[Block]) -> tuple[float | None, str | None]:
    """Tokens a verify step emits: over all steps where they are counted, else over those with a draft."""
    stats = counters(candidate)
    if stats is None:
        return None, None
    if stats.mean_acceptance_length_all_steps is not None:
        return stats.mean_acceptance_length_all_steps, "all steps"
    return stats.mean_acceptance_length, None if stats.mean_acceptance_length is None else "steps with a draft"


def _cost(length: float | None, base_ms: float | None, other_ms: float | None) -> float | None:
    """What a verify step costs more than a plain one, per token accepted in it; below the baseline's TPOT it pays."""
    if length is None or length <= 1 or base_ms is None or other_ms is None:
        return None
    return (other_ms * length - base_ms) / (length - 1)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _by_turn(matched: Sequence[Pair]) -> dict[str, float | None]:
    found = _grouped(matched, lambda record: str(record.job.turn + 1))
    return found if len(found) > 1 else {}


def _grouped(matched: Sequence[Pair], key: Callable[[Record], str]) -> dict[str, float | None]:
    groups: dict[str, list[Pair]] = {}
    for pair in matched:
        groups.setdefault(key(pair[0]), []).append(pair)
    return {name: tpot_speedup(found) for name, found in groups.items()}
