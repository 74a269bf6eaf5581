"""What a request does to the target's logits before a token is picked: bans, biases, penalties.

Every verified row is adjusted by itself: row i stands behind the tokens of the sequence and behind the drafted tokens
that lead to it, its *path*. So a penalty sees a token that was drafted two places before in the same block, and a
request decodes as it would token by token. Order and meaning are vLLM's (vllm/v1/sample/sampler.py): bans of tokens,
then biases, then penalties; temperature and the filters follow in `specctl.runtime.sampling`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.request import SamplingParams

# Rows of a step that belong to one sequence, and for each the drafted tokens that lead to it.
Paths = Many[Many[int]]

_BANNED = float("-inf")


class Part(ABC):
    """One thing that a request asks for."""

    @abstractmethod
    def change(self, rows: Tensor, paths: Paths) -> None:
        """Work on ``rows`` [n, vocab] in place; ``paths[i]`` leads to row i."""

    def take(self, token: int) -> None:  # noqa: B027 – most parts remember nothing
        """A token stands; told in order."""


class Adjustment:
    """All that one request changes about its logits, in order."""

    def __init__(self, parts: Many[Part]) -> None:
        self._parts = parts

    def apply(self, logits: Tensor, paths: Paths) -> Tensor:
        """The adjusted rows [n, vocab] for ``logits`` [n, vocab], which stay as they are; float32 or wider."""
        rows = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
        for part in self._parts:
            part.change(rows, paths)
        return rows

    def take(self, token: int) -> None:
        """A token stands."""
        for part in self._parts:
            part.take(token)


def check_possible(row: Tensor, token: int) -> None:
    """Raises SpecctlError where ``token`` was picked from a ``row`` [vocab] in which everything is banned."""
    if row[token] == _BANNED:
        raise SpecctlError(
            "the request's own bans leave no token to come next",
            help="allowed_token_ids, bad_words, logit_bias and a format exclude each other here",
        )


class _Allowed(Part):
    """Nothing but these tokens."""

    def __init__(self, allowed: Many[int]) -> None:
        self._allowed = list(allowed)

    def change(self, rows: Tensor, paths: Paths) -> None:
        del paths  # what is allowed does not depend on what came before
        kept = rows[:, self._allowed]
        rows.fill_(_BANNED)
        rows[:, self._allowed] = kept


class _BadWords(Part):
    """A word's last token may not follow the others of that word."""

    def __init__(self, words: Many[Many[int]]) -> None:
        self._words = [list(word) for word in words]
        self._longest = max(len(word) for word in self._words) - 1
        self._recent: list[int] = []

    def change(self, rows: Tensor, paths: Paths) -> None:
        for row, path in zip(rows, paths, strict=True):
            before = [*self._recent, *path]
            for *start, last in self._words:
                if before[len(before) - len(start) :] == start:
                    row[last] = _BANNED

    def take(self, token: int) -> None:
        self._recent = [*self._recent, token][-self._longest :] if self._longest else []


class _MinTokens(Part):
    """No end before so many output tokens."""

    def __init__(self, min_tokens: int, ends: Many[int]) -> None:
        self._left = min_tokens
        self._ends = list(ends)

    def change(self, rows: Tensor, paths: Paths) -> None:
        for row, path in zip(rows, paths, strict=True):
            if len(path) >= self._left:
                continue
            kept = row[self._ends]
            row[self._ends] = _BANNED
            if row.max() == _BANNED:  # a grammar has come to its end: nothing else is left
                row[self._ends] = kept

    def take(self, token: int) -> None:
        del token  # any counts
        self._left -= 1


class _Bias(Part):
    """A number added to the logits of some tokens."""

    def __init__(self, bias: Many[tuple[int, float]]) -> None:
        self._tokens = [token for token, _ in bias]
        self._values = [value for _, value in bias]

    def change(self, rows: Tensor, paths: Paths) -> None:
        del paths  # a bias is the same everywhere
        rows[:, self._tokens] += torch.tensor(self._values, dtype=rows.dtype, device=rows.device)


class _Penalties(Part):
    """Repetition over prompt and output; frequency and presence over the output alone.

    ``_counts`` [vocab]: how often the output holds each token; ``_seen`` [vocab]: whether prompt or output holds it.
    """

    def __init__(self, sampling: SamplingParams, prompt: Many[int], vocab_size: int, device: torch.device) -> None:
        self._repetition = sampling.repetition_penalty
        self._frequency = sampling.frequency_penalty
        self._presence = sampling.presence_penalty
        self._counts = torch.zeros(vocab_size, dtype=torch.float64, device=device)
        self._seen = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        self._seen[list(prompt)] = True

    def change(self, rows: Tensor, paths: Paths) -> None:
        counts = self._counts.expand(len(rows), -1)
        places = [(row, token) for row, path in enumerate(paths) for token in path]
        if places:
            index = torch.tensor(places, device=rows.device).T
            ones = counts.new_ones(len(places))
            counts = counts.clone().index_put_((index[0], index[1]), ones, accumulate=True)
        if self._repetition != 1:
            seen = self._seen | (counts > 0)
            penalised = torch.where(rows > 0, rows / self._repetition, rows * self._repetition)
            rows.copy_(torch.where(seen, penalised, rows))
        rows -= (self._frequency * counts + self._presence * (counts > 0)).to(rows.dtype)

    def take(self, token: int) -> None:
        self._counts[token] += 1


def make_adjustment(
    sampling: SamplingParams,
    prompt: Many[int],
    eos: frozenset[int],
    vocab_size: int,
    device: torch.device,
    grammar: Part | None = None,
) -> Adjustment | None:
    """What ``sampling`` asks for; None where that is nothing, so that such a request pays nothing.

    ``prompt`` [n] token ids; ``eos``: the ids that end an output by themselves; ``grammar``: what its answer keeps to.
    """
    parts: list[Part] = [grammar] if grammar else []
    if sampling.allowed_token_ids:
        parts.append(_Allowed(sampling.allowed_token_ids))
    if sampling.bad_words:
        parts.append(_BadWords(sampling.bad_words))
    if sampling.min_tokens > 0:
        own = frozenset() if sampling.ignore_eos else eos
        parts.append(_MinTokens(sampling.min_tokens, sorted({*own, *sampling.stop_token_ids})))
    if sampling.logit_bias:
        parts.append(_Bias(sampling.logit_bias))
    penalties = (sampling.repetition_penalty, sampling.frequency_penalty, sampling.presence_penalty)
    if penalties != (1, 0, 0):
        parts.append(_Penalties(sampling, prompt, vocab_size, device))
    return Adjustment(parts) if parts else None
