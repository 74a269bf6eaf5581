"""A candidate against the baseline: paired speed-up with its interval, outputs token by token, keep or not.

A pair is one prompt in one repeat, run by both at the same concurrency within the same turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specctl.bench.load import Block, Record
from specctl.bench.metrics import finished, output_throughput, pooled

CONFIDENCE = 0.95
RESAMPLES = 2000

IDENTICAL, NEAR_TIE, DIFFERENT, NOT_CHECKED = "identical", "near-tie", "different", "not-checked"

Pair = tuple[Record, Record]
Margin = Callable[[Sequence[int]], float]
"""Distance of the two largest logits that the target has after a prefix of token ids."""


@dataclass(frozen=True)
class Divergence:
    """The first token at which a candidate's output leaves the baseline's.

    `request` is the prompt's index in the workload, `token` the index in the output. `margin` is None where one output
    simply ends: nothing was chosen there.
    """

    request: int
    token: int
    margin: float | None

    def as_dict(self) -> dict[str, Any]:
        """The report's form."""
        return {"request": self.request, "token": self.token, "margin": self.margin}


@dataclass(frozen=True)
class TieRule:
    """How to tell numeric noise from a wrong token: differences at a margin of at most `limit` logits are near-ties."""

    margin: Margin
    limit: float


def pairs(baseline: Sequence[Block], candidate: Sequence[Block]) -> list[Pair]:
    """The requests that both finished, matched by repeat and prompt."""
    known = {(record.job.repeat, record.job.index): record for record in finished(baseline)}
    found = ((known.get((record.job.repeat, record.job.index)), record) for record in finished(candidate))
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


def speedup_interval(matched: Sequence[Pair], seed: int) -> list[float] | None:
    """The 95 % bootstrap interval of `tpot_speedup`; None with fewer than two pairs.

    Prompts and repeats are drawn with replacement, each by itself (a crossed, "pigeonhole" bootstrap: Owen 2007): a
    drawn prompt brings all its repeats, a drawn repeat all its prompts. So both the choice of prompts and the machine's
    drift widen the interval, and the pair stays a pair. Prompts are drawn within their category, since the mix of
    categories is chosen, not sampled; with a category of one prompt, from all of them, since one prompt says nothing of
    its category's spread. 2000 draws, seeded; percentile ends.
    """
    import numpy as np

    timed = _timed(matched)
    if len(timed) < 2:
        return None
    categories, rows, columns = _axes([base for (base, _), _ in timed])
    slow, fast = (np.zeros((len(rows), len(columns))) for _ in range(2))
    for (base, _), times in timed:
        place = rows[base.job.index], columns[base.job.repeat]
        slow[place], fast[place] = times
    random = np.random.default_rng(seed)
    counts = [random.multinomial(n, [1 / n] * n, size=RESAMPLES) for n in (*categories, len(columns))]
    prompts, repeats = np.concatenate(counts[:-1], axis=1), counts[-1]
    above, below = (((prompts @ times) * repeats).sum(axis=1) for times in (slow, fast))
    drawn = above[below > 0] / below[below > 0]
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return [float(low), float(high)]


def _axes(records: Sequence[Record]) -> tuple[list[int], dict[int, int], dict[int, int]]:
    """Prompts in each group to draw from; the row of each prompt, group after group; the column of each repeat."""
    categories: dict[str, dict[int, None]] = {}
    for record in records:
        categories.setdefault(record.job.prompt.category, {})[record.job.index] = None
    rows = {index: row for row, index in enumerate(index for group in categories.values() for index in group)}
    columns = {repeat: column for column, repeat in enumerate(sorted({record.job.repeat for record in records}))}
    sizes = [len(group) for group in categories.values()]
    return sizes if min(sizes) > 1 else [sum(sizes)], rows, columns


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first index at which two outputs differ, the end of the shorter one included; None where they are equal."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def compare_outputs(matched: Sequence[Pair], ties: TieRule) -> tuple[str, Divergence | None]:
    """`identical`, `near-tie` or `different`, and the divergence to look at: the first real one, else the first tie.

    Without pairs nothing was checked.
    """
    if not matched:
        return NOT_CHECKED, None
    seen: dict[tuple[int, tuple[int, ...]], float] = {}
    near: Divergence | None = None
    for base, other in matched:
        divergence = _divergence(base, other, ties.margin, seen)
        if divergence is None:
            continue
        if divergence.margin is None or divergence.margin > ties.limit:
            return DIFFERENT, divergence
        near = near or divergence
    return (IDENTICAL, None) if near is None else (NEAR_TIE, near)


def _divergence(
    base: Record, other: Record, margin: Margin, seen: dict[tuple[int, tuple[int, ...]], float]
) -> Divergence | None:
    place = first_difference(base.token_ids, other.token_ids)
    if place is None:
        return None
    if place == min(len(base.token_ids), len(other.token_ids)):
        return Divergence(base.job.index, place, None)
    # Repeats diverge at the same place; one forward answers for all of them.
    common = tuple(base.token_ids[:place])
    key = (base.job.index, common)
    if key not in seen:
        seen[key] = margin([*base.job.prompt.token_ids, *common])
    return Divergence(base.job.index, place, seen[key])


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
    outputs: str
    first_divergence: Divergence | None

    @property
    def keep(self) -> bool | None:
        """Whether the draft pays here: the speed-up's interval lies above 1 and throughput does not fall.

        Throughput "does not fall" when output tokens a second over the whole level are at least the baseline's. None
        where either was not measured.
        """
        if self.tpot_speedup_ci is None or self.throughput_ratio is None:
            return None
        return self.tpot_speedup_ci[0] > 1 and self.throughput_ratio >= 1

    def as_dict(self) -> dict[str, Any]:
        """The `comparison` entry of the report."""
        return {
            "baseline": self.baseline,
            "candidate": self.candidate,
            "k": self.k,
            "concurrency": self.concurrency,
            "tpot_speedup": self.tpot_speedup,
            "throughput_ratio": self.throughput_ratio,
            "tpot_speedup_ci": self.tpot_speedup_ci,
            "break_even_acceptance_length": self.break_even_acceptance_length,
            "by_category": {name: {"tpot_speedup": speedup} for name, speedup in self.by_category.items()},
            "outputs": self.outputs,
            "first_divergence": None if self.first_divergence is None else self.first_divergence.as_dict(),
            "keep": self.keep,
        }


def compare(
    names: tuple[str, str],
    k: int | None,
    concurrency: int,
    blocks: tuple[Sequence[Block], Sequence[Block]],
    seed: int,
    ties: TieRule | None,
) -> Comparison:
    """Compare the blocks of two runtimes, baseline first, at one level. `ties` None: outputs are not checked."""
    # Turns give each runtime one block; after Ctrl-C the last turn may have reached only some of them.
    common = min(len(blocks[0]), len(blocks[1]))
    baseline, candidate = (list(side[:common]) for side in blocks)
    matched = pairs(baseline, candidate)
    speedup = tpot_speedup(matched)
    stats = pooled(finished(candidate))
    length = None if stats is None else stats.mean_acceptance_length_all_steps
    outputs, divergence = (NOT_CHECKED, None) if ties is None else compare_outputs(matched, ties)
    return Comparison(
        baseline=names[0],
        candidate=names[1],
        k=k,
        concurrency=concurrency,
        tpot_speedup=speedup,
        tpot_speedup_ci=speedup_interval(matched, seed),
        throughput_ratio=_ratio(output_throughput(candidate), output_throughput(baseline)),
        break_even_acceptance_length=_ratio(length, speedup),
        by_category=_category_speedups(matched),
        outputs=outputs,
        first_divergence=divergence,
    )


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _category_speedups(matched: Sequence[Pair]) -> dict[str, float | None]:
    names = dict.fromkeys(base.job.prompt.category for base, _ in matched)
    return {name: tpot_speedup([pair for pair in matched if pair[0].job.prompt.category == name]) for name in names}
