"""How drafted tokens are judged, as a setting's ``acceptance`` names it: one class a way, over the pure functions of
`specctl.runtime.verify`. Requests that decode greedily are judged by the argmax in every lossless way.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.adjust import check_possible
from specctl.runtime.draft import ROOT, Draft, node_depths
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
)
from specctl.runtime.verify_tree import (
    last_row,
    relaxed_path,
    verify_thresholds,
    verify_tree_drawn,
    verify_tree_greedy,
    verify_tree_sampled,
    verify_typical,
)
from specctl.spec.config import Acceptance, SpecDecodeConfig

# Medusa's own, where the setting names none, and TensorRT-LLM's.
TYPICAL_THRESHOLD, TYPICAL_SHARE = 0.09, 0.3
RELAXED_TOPK, RELAXED_DELTA = 1, 0.0


class Verifier(Protocol):
    """Judges one sequence's draft. ``lossless``: the output's distribution is the target's.

    ``logits`` [n + 1, vocab] and ``best`` (their argmax, filled only where some request of the step is greedy or
    ``needs_best``) score what follows the newest token and each of the n drafted ones. The outcome of a tree names its
    path.
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
        if not sequence.request.sampling.greedy:
            return self.sampled(sequence, draft, probabilities(logits, sequence.request.sampling))
        if draft.parents is None:
            return verify_greedy(draft.tokens, best)
        return verify_tree_greedy(draft.tokens, draft.parents, best)

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        """``target`` [n + 1, vocab]: the request's own distributions."""
        uniforms = sequence.randomness.uniforms(len(draft.tokens) + 1)
        if draft.parents is None:
            return verify_sampled(draft.tokens, target, draft.probs, uniforms)
        return verify_tree_sampled(draft.tokens, draft.parents, target, draft.probs, uniforms)


class Block(Standard):
    """Block verification, of chains."""

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        assert draft.parents is None, "make_verifier refuses trees"
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
        begin, randomness = len(sequence.tokens), sequence.randomness

        def drawn(row: int, place: int) -> int:
            return randomness.pick(target[row], begin + place)

        if draft.parents is None:
            return verify_drawn(draft.tokens, lambda place: drawn(place, place))
        return verify_tree_drawn(draft.tokens, draft.parents, drawn)


class Typical(Standard):
    """Medusa's typical acceptance for requests that sample."""

    lossless = False

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        uniforms = sequence.randomness.uniforms(1)
        return verify_typical(draft.tokens, _parents(draft), target, self._threshold, TYPICAL_SHARE, uniforms)


class Thresholds(Standard):
    """SGLang's two thresholds for requests that sample."""

    lossless = False

    def __init__(self, single: float, acc: float) -> None:
        self._single = single
        self._acc = acc

    def sampled(self, sequence: Sequence, draft: Draft, target: Tensor) -> Outcome:
        uniforms = sequence.randomness.uniforms(len(draft.tokens) + 1)
        return verify_thresholds(draft.tokens, _parents(draft), target, self._single, self._acc, uniforms)


class Relaxed(Standard):
    """TensorRT-LLM's relaxed acceptance, of greedy requests too, while the model thinks: between the two ``thinking``
    tokens, or always where there are none.
    """

    lossless = False
    needs_best = True

    def __init__(self, topk: int, delta: float, thinking: tuple[int, int] | None) -> None:
        self._topk = topk
        self._delta = delta
        self._thinking = thinking

    def judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: Many[int]) -> Outcome:
        if not self._thinks(sequence):
            return super().judge(sequence, draft, logits, best)
        sampling = sequence.request.sampling
        scores = logits if sampling.greedy else probabilities(logits, sampling).log()
        path = relaxed_path(draft.tokens, _parents(draft), scores, self._topk, self._delta)
        return _then_own_token(sequence, path, logits, best)

    def _thinks(self, sequence: Sequence) -> bool:
        if self._thinking is None:
            return True
        newest = next((token for token in reversed(sequence.tokens) if token in self._thinking), None)
        return newest == self._thinking[0]


class Synthetic(Standard):
    """Chance alone decides, for measurements: of greedy requests too."""

    lossless = False
    needs_best = True

    def __init__(self, rates: tuple[float, ...]) -> None:
        self._rates = rates

    def judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: Many[int]) -> Outcome:
        depths = node_depths(_parents(draft))
        uniforms = sequence.randomness.uniforms(len(draft.tokens))
        accepted = verify_synthetic(self._rates, draft.depth, uniforms)
        node = depths.index(max(depths)) if depths else ROOT  # of a tree, along the first of its longest paths
        path: list[int] = []
        while node != ROOT:
            path.append(node)
            node = _parents(draft)[node]
        return _then_own_token(sequence, path[::-1][:accepted], logits, best)


def _parents(draft: Draft) -> Many[int]:
    """The parents of a chain too."""
    return range(ROOT, len(draft.tokens) - 1) if draft.parents is None else draft.parents


def _then_own_token(sequence: Sequence, path: Many[int], logits: Tensor, best: Many[int]) -> Outcome:
    """``path`` stands, and behind it what the target says by itself."""
    row, sampling = last_row(path), sequence.request.sampling
    if sampling.greedy:
        return Outcome(len(path), best[row], tuple(path))
    last = probabilities(logits[row], sampling)
    return Outcome(len(path), sequence.randomness.pick(last, len(sequence.tokens) + len(path)), tuple(path))


def first_token(sequence: Sequence, logits: Tensor) -> int:
    """The token behind the prompt; ``logits`` [1, vocab] of its last row. Raises SpecctlError where all are banned."""
    sampling, adjustment = sequence.request.sampling, sequence.adjustment
    row = adjustment.apply(logits, [[]])[0] if adjustment else logits[0]
    if sampling.greedy:
        token = int(row.argmax())
    else:
        token = sequence.randomness.pick(probabilities(row, sampling), len(sequence.tokens))
    if adjustment:
        check_possible(row, token)
    return token


def make_verifier(spec: SpecDecodeConfig, k: int) -> Verifier:
    """The verifier of a setting that drafts ``k`` tokens deep; raises SpecctlError for a way that does not run here, or
    not with these drafts.
    """
    acceptance = spec.acceptance
    if (acceptance.threshold_single, acceptance.threshold_acc) != (1.0, 1.0):
        return _thresholds(spec)
    match acceptance.method:
        case "standard":
            return Standard()
        case "block" if spec.tree is not None:
            raise SpecctlError(
                "block verification judges chains, and the setting drafts a tree",
                help="leave out acceptance.method: block, or the tree",
            )
        case "block":
            return Block()
        case "coupled":
            return Coupled()
        case "typical":
            threshold = acceptance.posterior_threshold
            return Typical(TYPICAL_THRESHOLD if threshold is None else threshold)
        case "relaxed":
            return _relaxed(acceptance)
        case "synthetic":
            return Synthetic(_rates(acceptance, k))
    raise SpecctlError(
        f"acceptance method {acceptance.method!r} does not run on the bundled runtime",
        help="it runs standard, block, coupled, typical, relaxed and synthetic",
    )


def _thresholds(spec: SpecDecodeConfig) -> Verifier:
    acceptance = spec.acceptance
    named = f"threshold_single {acceptance.threshold_single} and threshold_acc {acceptance.threshold_acc}"
    if acceptance.method != "standard" or spec.draft_sample_method == "probabilistic":
        other = "drafts that were drawn" if acceptance.method == "standard" else f"{acceptance.method} acceptance"
        raise SpecctlError(f"{named} do not go with {other}", help="leave the thresholds at 1, where they are exact")
    return Thresholds(acceptance.threshold_single, acceptance.threshold_acc)


def _relaxed(acceptance: Acceptance) -> Verifier:
    topk = RELAXED_TOPK if acceptance.relaxed_topk is None else acceptance.relaxed_topk
    delta = RELAXED_DELTA if acceptance.relaxed_delta is None else acceptance.relaxed_delta
    if topk < 1 or delta < 0:
        raise SpecctlError(
            f"relaxed_topk is {topk} and relaxed_delta is {delta}; at least 1 and 0 were wanted",
            help="1 and 0 accept the target's best token alone",
        )
    begin, end = acceptance.thinking_begin_token, acceptance.thinking_end_token
    return Relaxed(topk, delta, None if begin is None or end is None else (begin, end))


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
