"""From logits to probabilities to a token, and the randomness of one request."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from specctl.runtime.request import SamplingParams


def probabilities(logits: Tensor, sampling: SamplingParams) -> Tensor:
    """The distribution [..., vocab] that ``sampling`` makes of ``logits``: temperature, then top-k, top-p, min-p.

    Computed in float32, or float64 where the model is; each filter renormalises, so that the next sees a distribution.
    """
    scaled = logits.to(torch.promote_types(logits.dtype, torch.float32)) / sampling.temperature
    if 0 < sampling.top_k < scaled.shape[-1]:
        lowest = scaled.topk(sampling.top_k, dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled < lowest, float("-inf"))
    probs = scaled.softmax(dim=-1)
    if sampling.top_p < 1:
        probs = _nucleus(probs, sampling.top_p)
    if sampling.min_p > 0:
        probs = torch.where(probs < sampling.min_p * probs.amax(dim=-1, keepdim=True), 0.0, probs)
        probs = probs / probs.sum(dim=-1, keepdim=True)
    return probs


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Keep the fewest most likely tokens that together reach ``top_p``; the token that crosses the bound stays."""
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(dim=-1) - ordered
    kept = torch.where(before < top_p, ordered, 0.0)
    probs = torch.zeros_like(probs).scatter_(-1, order, kept)
    return probs / probs.sum(dim=-1, keepdim=True)


def draw(probs: Tensor, uniform: float) -> int:
    """The token that ``uniform`` in [0, 1) picks from ``probs`` [vocab] (which need not sum to one exactly).

    By the inverse of the cumulative sum, in float64, so that one number gives the same token on every device and a
    token of probability 0 is never picked.
    """
    cumulative = probs.double().cumsum(dim=-1)
    # right=True: the first entry strictly above the point, which skips entries that add nothing.
    token = int(torch.searchsorted(cumulative, cumulative[-1] * uniform, right=True))
    return min(token, int(probs.nonzero()[-1])) if token >= probs.shape[-1] else token


class Randomness:
    """The random numbers of one request, from its own seed: what shares its batch cannot change them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator = torch.Generator().manual_seed(seed)

    def pick(self, probs: Tensor, position: int) -> int:  # noqa: ARG002 – the coupled kind needs the position
        """A token from ``probs`` [vocab] for the place ``position`` of the sequence."""
        return draw(probs, self.uniforms(1)[0])

    def pick_several(self, probs: Tensor, position: int, count: int) -> list[int]:  # noqa: ARG002 – as for `pick`
        """Different tokens from ``probs`` [vocab], one drawn after the other without replacement; fewer than ``count``
        where fewer have a chance.
        """
        left, tokens = probs.double().clone(), []
        for uniform in self.uniforms(count):
            if not bool(left.any()):
                break
            tokens.append(draw(left, uniform))
            left[tokens[-1]] = 0
        return tokens

    def uniforms(self, count: int) -> list[float]:
        """``count`` numbers in [0, 1)."""
        numbers: list[float] = torch.rand(count, generator=self._generator, dtype=torch.float64).tolist()
        return numbers


class CoupledRandomness(Randomness):
    """The noise of a place depends on the request's seed and on the place alone, not on what was drawn before.

    So the target's token at a place is the same however many forwards led there, and a draft that is perturbed by the
    same noise agrees with it more often. A token is the argmax of log probability plus Gumbel noise, which is a draw
    from ``probs``.
    """

    def pick(self, probs: Tensor, position: int) -> int:
        """The token that the noise of ``position`` picks from ``probs`` [vocab]."""
        return int(self._perturbed(probs, position).argmax())

    def pick_several(self, probs: Tensor, position: int, count: int) -> list[int]:
        """The tokens that the noise of ``position`` puts first, which is drawing without replacement; the first is
        that of `pick`.
        """
        best = self._perturbed(probs, position).topk(min(count, probs.shape[-1]))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [token for token, value in pairs if value > float("-inf")]

    def _perturbed(self, probs: Tensor, position: int) -> Tensor:
        mixed = hashlib.blake2b(f"{self._seed}/{position}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(mixed, "little") >> 1)
        race = torch.empty(probs.shape[-1], dtype=torch.float64).exponential_(generator=generator)
        # -log of an exponential variable is Gumbel noise.
        return probs.double().cpu().log() - race.log()


def request_seed(engine_seed: int, request_id: str, seed: int | None) -> int:
    """The request's own seed, or one made of the engine's seed and the request's id."""
    if seed is not None:
        return seed
    digest = hashlib.blake2b(f"{engine_seed}/{request_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
