"""Verification: which drafted tokens stand, and which token follows them. Pure functions; probabilities in, outcome
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from specctl.runtime.sampling import draw


@dataclass(frozen=True)
class Outcome:
    """``accepted`` drafted tokens stand; ``next_token`` is the correction, or the bonus token when all stand.

    ``path``: which drafted tokens stand, in order; None: the first ``accepted``.
    """

    accepted: int
    next_token: int
    path: tuple[int, ...] | None = None

    @property
    def last_row(self) -> int:
        """The row that gave ``next_token``."""
        if self.path is None:
            return self.accepted
        return self.path[-1] + 1 if self.path else 0


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


def verify_block(draft: Sequence[int], target: Tensor, proposal: Tensor | None, uniforms: Sequence[float]) -> Outcome:
    """Block verification (Sun et al. 2403.10444): judges the drafted tokens together; exact like `verify_sampled`, and
    accepts at least as many on average. Arguments as there.
    """
    ratio, accepted, kept = 1.0, 0, 1.0
    for place, token in enumerate(draft):
        offered = 1.0 if proposal is None else float(proposal[place, token])
        ratio = min(ratio * float(target[place, token]) / offered, 1.0)
        chance = ratio
        if place + 1 < len(draft):
            rest = float(_residual(ratio * target[place + 1], draft[place + 1], proposal, place + 1).sum())
            chance = rest / (rest + 1 - ratio) if rest > 0 else 0.0
        if uniforms[place] < chance:
            accepted, kept = place + 1, ratio
    if accepted == len(draft):
        return Outcome(accepted, draw(target[accepted], uniforms[-1]))
    left = _residual(kept * target[accepted], draft[accepted], proposal, accepted)
    # Where target and draft agree but for rounding nothing is left, and the target itself is as good.
    return Outcome(accepted, draw(left if bool(left.any()) else target[accepted], uniforms[-1]))


def verify_drawn(draft: Sequence[int], drawn: Callable[[int], int]) -> Outcome:
    """Accept while the draft is what the target draws by itself; ``drawn(i)``: its token at place i, asked for in order
    and only as far as needed.
    """
    for place, token in enumerate(draft):
        own = drawn(place)
        if own != token:
            return Outcome(place, own)
    return Outcome(len(draft), drawn(len(draft)))


def verify_synthetic(rates: Sequence[float], drafted: int, uniforms: Sequence[float]) -> int:
    """How many of ``drafted`` tokens stand when chance alone decides, lossy: ``rates[i]`` is the probability that the
    first i + 1 do (vLLM's synthetic acceptance).
    """
    before = 1.0
    for place in range(drafted):
        rate = rates[place] if place < len(rates) else 0.0
        if before <= 0 or uniforms[place] >= rate / before:
            return place
        before = rate
    return drafted


def rates_of_length(length: float, k: int) -> tuple[float, ...]:
    """Synthetic rates of k places whose mean acceptance length is ``length`` (bonus included), with the least variance:
    ones, a fraction, zeros.
    """
    whole = int(length - 1)
    return tuple(1.0 if i < whole else length - 1 - whole if i == whole else 0.0 for i in range(k))
