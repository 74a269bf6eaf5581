"""How far a draft could speed up one stream, if nothing but networks took time.

A round drafts γ tokens, verifies γ + 1 rows and emits E tokens; plain decoding takes E forwards of one row for them. So
no method is faster than E / (γc + v(γ + 1)), with v(M) = t(M) / t(1), what M rows cost the target, and c = t(draft
step) / t(1), what a drafted token costs the draft (Leviathan et al., arXiv 2211.17192, with the price of verifying
added). All of it is measured in the run itself, repeat by repeat: t is the time in the networks alone, so what the
engine does besides counts against the method. Rounds of varying length (n-gram, suffix) enter as they were; their
search is no network and costs nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from specctl.bench.compare import pairs, tpot_speedup
from specctl.bench.records import Block

if TYPE_CHECKING:
    from specctl.runtime.meter import StepCosts

KEYS = ("bound", "share_of_bound", "draft_cost", "verify_cost")


@dataclass(frozen=True)
class Bound:
    """`draft_cost` is c (None where nothing was drafted), `verify_cost` the mean of v over the rounds."""

    speedup: float
    draft_cost: float | None
    verify_cost: float


def bound_of(plain: StepCosts | None, drafted: StepCosts | None) -> Bound | None:
    """The bound of one repeat, from the steps of both; None where either has none."""
    if plain is None or drafted is None or not plain.steps or not drafted.steps or plain.target_s <= 0:
        return None
    one = plain.target_s / plain.steps
    emitted = 1 + drafted.accepted / drafted.steps
    spent = (drafted.target_s + drafted.draft_s) / drafted.steps
    cost = drafted.draft_s / drafted.drafted / one if drafted.drafted else None
    return Bound(emitted * one / spent, cost, drafted.target_s / drafted.steps / one)


def bound_figures(plain: Sequence[Block], drafted: Sequence[Block]) -> dict[str, Any]:
    """Medians over repeats: `bound`, `share_of_bound` (measured speed-up / bound), `draft_cost`, `verify_cost`.

    All None where the steps of one stream were not metered.
    """
    slow, fast = _by_repeat(plain), _by_repeat(drafted)
    found = [
        (each, tpot_speedup(pairs(slow[repeat], fast[repeat])))
        for repeat in slow.keys() & fast.keys()
        if (each := bound_of(_costs(slow[repeat]), _costs(fast[repeat]))) is not None
    ]
    values = (
        [bound.speedup for bound, _ in found],
        [speedup / bound.speedup for bound, speedup in found if speedup is not None],
        [bound.draft_cost for bound, _ in found if bound.draft_cost is not None],
        [bound.verify_cost for bound, _ in found],
    )
    return {key: median(each) if each else None for key, each in zip(KEYS, values, strict=True)}


def _by_repeat(blocks: Sequence[Block]) -> dict[int, list[Block]]:
    """The blocks of each repeat."""
    found: dict[int, list[Block]] = {}
    for block in blocks:
        if block.records:
            found.setdefault(block.records[0].job.repeat, []).append(block)
    return found


def _costs(blocks: Sequence[Block]) -> StepCosts | None:
    """The sum over blocks; None where one was not metered."""
    known = [block.costs for block in blocks if block.costs is not None]
    if not known or len(known) < len(blocks):
        return None
    total = known[0]
    for each in known[1:]:
        total = total + each
    return total
