"""Verification: which drafted tokens stand, and which token follows them. Pure functions; probabilities in, outcome
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from specctl.runtime.sampling import draw


@dataclass(frozen=True)
class Outcome:
    """``accepted`` drafted tokens stand; ``next_token`` is the correction, or the bonus token when all stand."""

    accepted: int
    next_token: int


def verify_greedy(draft: Sequence[int], best: Sequence[int]) -> Outcome:
    """Accept while the draft is the argmax. ``best``: [k + 1], the target's argmax at each position."""
    accepted = 0
    while accepted < len(draft) and draft[accepted] == best[accepted]:
        accepted += 1
    return Outcome(accepted, best[accepted])


def verify_sampled(draft: Sequence[int], target: Tensor, proposal: Tensor | None, uniforms: Sequence[float]) -> Outcome:
    """Rejection sampling (Leviathan et al. 2211.17192, Chen et al. 2302.01318): the outcome follows ``target`` exactly.

    ``target``: [k + 1, vocab] probabilities; ``proposal``: [k, vocab], what each draft token was drawn from, None
    where it was picked without chance (one-hot); ``uniforms``: k + 1 numbers in [0, 1), one a draft token and one for
    the last token.
    """
    for place, token in enumerate(draft):
        wanted = float(target[place, token])
        offered = 1.0 if proposal is None else float(proposal[place, token])
        # u * q < p is u < p / q without the division, and never accepts what the target gives no chance.
        if uniforms[place] * offered < wanted:
            continue
        return Outcome(place, draw(_residual(target[place], token, proposal, place), uniforms[-1]))
    return Outcome(len(draft), draw(target[len(draft)], uniforms[-1]))


def _residual(wanted: Tensor, token: int, proposal: Tensor | None, place: int) -> Tensor:
    """What the target wants beyond what was offered; not normalised."""
    if proposal is not None:
        return (wanted - proposal[place]).clamp_min(0)
    rest = wanted.clone()
    rest[token] = 0
    return rest
