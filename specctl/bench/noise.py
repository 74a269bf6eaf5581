"""How much of a difference the machine makes by itself, and how wide an interval has to be for it.

Two kinds of spread stand behind a speed-up. Prompts differ: some are drafted well, some badly; many prompts average
that out. And whatever shares the machine hits a whole block of requests of one runtime and not the other's; only many
blocks average that out, however many prompts each holds. So both are estimated, and both widen the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi, sqrt, tan
from statistics import NormalDist, fmean, variance

from specctl.bench.outputs import Pair
from specctl.bench.records import Block, Record

# Taken for granted before anything is measured: on a machine with other work a block's speed-up scatters by 10 %. It
# weighs as much as three blocks, so that a short run is neither sure of itself nor blind (a moderated t, Smyth 2004).
PRIOR_VARIANCE, PRIOR_FREEDOM = 0.10**2, 2


@dataclass(frozen=True)
class BlockNoise:
    """Variance of the logarithm of a block's speed-up beyond what its prompts explain; `freedom` of its estimate."""

    variance: float = 0.0
    freedom: int = 0


NO_NOISE = BlockNoise()


def paired_blocks(baseline: Sequence[Block], candidate: Sequence[Block]) -> list[list[Pair]]:
    """The pairs of each turn: requests with two tokens or more that both finished, by repeat, prompt and turn."""
    found = []
    for one, other in zip(baseline, candidate, strict=False):
        known = {record.job.key: record for record in one.records if _timed(record)}
        matched = [
            (known[key], record) for record in other.records if _timed(record) and (key := record.job.key) in known
        ]
        found.append(matched)
    return found


def _timed(record: Record) -> bool:
    return not record.failed and bool(record.tpot_s)


def block_noise(levels: Sequence[Sequence[Sequence[Pair]]]) -> BlockNoise:
    """The noise of blocks, from all levels of one candidate together: a level alone has too few of them.

    Within a block, pairs scatter around their category's mean; blocks scatter more than that explains, and what is left
    is the noise of whole blocks.
    """
    squares, explained, freedom = 0.0, [], 0
    for blocks in levels:
        rests = [rest for rest in _rests(blocks) if rest]
        if len(rests) < 2:
            continue
        means = [fmean(rest) for rest in rests]
        squares += variance(means) * (len(means) - 1)
        freedom += len(means) - 1
        explained += [variance(rest) / len(rest) for rest in rests if len(rest) > 1]
    by_chance = fmean(explained) if explained else 0.0
    measured = max(0.0, squares / freedom - by_chance) if freedom else 0.0
    known = freedom + PRIOR_FREEDOM
    return BlockNoise((freedom * measured + PRIOR_FREEDOM * PRIOR_VARIANCE) / known, known)


def _rests(blocks: Sequence[Sequence[Pair]]) -> list[list[float]]:
    """Each pair's logarithm of speed-up less its category's mean at this level, block by block."""
    by_category: dict[str, list[float]] = {}
    for block in blocks:
        for pair in block:
            by_category.setdefault(pair[0].job.prompt.category, []).append(_log_ratio(pair))
    means = {name: fmean(values) for name, values in by_category.items()}
    return [[_log_ratio(pair) - means[pair[0].job.prompt.category] for pair in block] for block in blocks]


def _log_ratio(pair: Pair) -> float:
    slow, fast = pair[0].tpot_s, pair[1].tpot_s
    assert slow
    assert fast
    return log(slow / fast)


def student(probability: float, freedom: int) -> float:
    """The quantile of Student's t; the normal one without degrees of freedom to estimate from.

    Exact for one and two degrees; otherwise the expansion of Abramowitz and Stegun 26.7.5, good to 1 % at 99 %.
    """
    if freedom == 1:
        return tan(pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) * sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    if freedom < 1:
        return z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
