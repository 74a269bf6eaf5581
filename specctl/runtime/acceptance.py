"""How drafted tokens are judged, as a setting's ``acceptance`` names it: one class a way, over the pure functions of
`specctl.runtime.verify`. Requests that decode greedily are judged by the argmax in every lossless way.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.draft import Draft
from specctl.runtime.sampling import CoupledRandomness, Randomness, probabilities
from specctl.runtime.sequence import Sequence
from specctl.runtime.verify import (
    Outcome,
    rates_of_length,
    verify_block,
    verify_drawn,
    verify_greedy,
    verify_sampled,
    verify_synthetic,
    verify_typical,
)
from specctl.spec.config import Acceptance

# Medusa's own, where the setting names none.
TYPICAL_THRESHOLD, TYPICAL_SHARE = 0.09, 0.3


class Verifier(Protocol):
    """Judges one sequence's draft. ``lossless``: the output's distribution is the target's.

    ``logits`` [k + 1, vocab] and ``best`` (their argmax, filled only where some request of the step is greedy or
    ``needs_best``) score each drafted token and the one behind.
    """

    lossless: bool
    needs_best: bool

    def randomness(self, seed: int) -> Randomness: ...
    def judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: Many[int]) -> Outcome: ...


class Standard:
    """Rejection sampling."""

    lossless = True
    needs_best = False

    def randomness(self, seed: int) -> Randomness:
        """The source of a request's random numbers."""
        return Randomness(seed)

    def judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: Many[int]) -> Outcome:
        """Greedy requests by the argmax, others by `sampled`."""
        if sequence.request.sampling.greedy:
            return verify_greedy(draft.tokens, best)
        return self.sampled(sequence, draft, probabilities(logits, sequence.request.sampling))

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        """``target`` [k + 1, vocab]: the request's own distributions."""
        uniforms = sequence.randomness.uniforms(len(draft.tokens) + 1)
        return verify_sampled(draft.tokens, target, draft.probs, uniforms)


class Block(Standard):
    """Block verification."""

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        uniforms = sequence.randomness.uniforms(len(draft.tokens) + 1)
        return verify_block(draft.tokens, target, draft.probs, uniforms)


class Coupled(Standard):
    """The target draws with noise fixed by seed and place; a draft stands where it is that token.

    A seeded request has the same text with any draft, with none and in any batch. What it costs: a greedy draft is
    accepted as often as by rejection sampling, with the target's probability of it. A sampled one is accepted with at
    least (1 - d) / (1 + d), d the total variation between the two (Daliri et al., arXiv 2408.07978), where rejection
    sampling reaches 1 - d.
    """

    def randomness(self, seed: int) -> Randomness:
        return CoupledRandomness(seed)

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        begin = len(sequence.tokens)
        return verify_drawn(draft.tokens, lambda place: sequence.randomness.pick(target[place], begin + place))


class Typical(Standard):
    """Medusa's typical acceptance for requests that sample."""

    lossless = False

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        uniforms = sequence.randomness.uniforms(1)
        return verify_typical(draft.tokens, target, self._threshold, TYPICAL_SHARE, uniforms)


class Synthetic(Standard):
    """Chance alone decides, for measurements: of greedy requests too."""

    lossless = False
    needs_best = True

    def __init__(self, rates: tuple[float, ...]) -> None:
        self._rates = rates

    def judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: Many[int]) -> Outcome:
        uniforms = sequence.randomness.uniforms(len(draft.tokens))
        accepted = verify_synthetic(self._rates, len(draft.tokens), uniforms)
        sampling = sequence.request.sampling
        if sampling.greedy:
            return Outcome(accepted, best[accepted])
        last = probabilities(logits[accepted], sampling)
        return Outcome(accepted, sequence.randomness.pick(last, len(sequence.tokens) + accepted))


def make_verifier(acceptance: Acceptance, k: int) -> Verifier:
    """The verifier of a setting that drafts ``k`` tokens; raises SpecctlError for a way that does not run here."""
    if (acceptance.threshold_single, acceptance.threshold_acc) != (1.0, 1.0):
        raise SpecctlError(
            "acceptance thresholds do not run on the bundled runtime",
            help="leave threshold_single and threshold_acc at 1, where they are exact",
        )
    match acceptance.method:
        case "standard":
            return Standard()
        case "block":
            return Block()
        case "coupled":
            return Coupled()
        case "typical":
            threshold = acceptance.posterior_threshold
            return Typical(TYPICAL_THRESHOLD if threshold is None else threshold)
        case "synthetic":
            return Synthetic(_rates(acceptance, k))
    raise SpecctlError(
        f"acceptance method {acceptance.method!r} does not run on the bundled runtime",
        help="it runs standard, block, coupled, typical and synthetic",
    )


def _rates(acceptance: Acceptance, k: int) -> tuple[float, ...]:
    if acceptance.synthetic_rates is not None:
        return acceptance.synthetic_rates
    length = acceptance.synthetic_length
    if length is None or not 1 <= length <= k + 1:
        raise SpecctlError(
            f"synthetic acceptance has no rates and a length of {length}; with k = {k} it is 1 to {k + 1}",
            help="set acceptance.synthetic_rates or acceptance.synthetic_length",
        )
    return rates_of_length(length, k)
