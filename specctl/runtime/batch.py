"""The rows of one step: which tokens of which sequences go through the target together."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from specctl.runtime.draft import ROOT, Draft, node_depths
from specctl.runtime.kv_cache import Branches, Span
from specctl.runtime.scheduler import Chunk
from specctl.runtime.sequence import Sequence


@dataclass
class Batch:
    """``begins[i]``: the first row of item i; ``logit_rows``: rows whose logits are needed; ``firsts[i]``: where those
    of item i begin.
    """

    tokens: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    logit_rows: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)

    def add(self, span: Span, tokens: Many[int], num_logits: int) -> None:
        """Add a span whose last ``num_logits`` rows want logits."""
        self.begins.append(len(self.tokens))
        self.tokens += tokens
        self.spans.append(span)
        self.firsts.append(len(self.logit_rows))
        self.logit_rows += range(len(self.tokens) - num_logits, len(self.tokens))


def make_batch(decodes: list[Sequence], drafts: list[Draft], chunks: list[Chunk]) -> Batch:
    """Decoding sequences first, in the order of their slots, then prefill chunks; a chunk wants its last row's
    logits, or all of them where the prompt is scored.
    """
    batch = Batch()
    for sequence, draft in zip(decodes, drafts, strict=True):
        tokens = [sequence.tokens[-1], *draft.tokens]
        start = sequence.num_computed
        branches = None if draft.parents is None else _branches(start, draft.parents)
        batch.add(Span(sequence.slot, start, len(tokens), branches), tokens, len(tokens))
    for chunk in chunks:
        begin, end = chunk.sequence.num_computed, chunk.sequence.num_computed + chunk.count
        span = Span(chunk.sequence.slot, begin, chunk.count)
        batch.add(span, chunk.sequence.tokens[begin:end], chunk.count if scores_prompt(chunk.sequence) else 1)
    return batch


def scores_prompt(sequence: Sequence) -> bool:
    """Whether every row of a sequence's prompt wants logits."""
    return sequence.request.sampling.prompt_logprobs is not None


def _branches(trunk: int, parents: tuple[int, ...]) -> Branches:
    return Branches(trunk, *_shape(parents))


@lru_cache(maxsize=256)
def _shape(parents: tuple[int, ...]) -> tuple[tuple[int, ...], Tensor]:
    """Depths and sight [n + 1, n + 1] of the newest token, row 0, and the nodes behind it. A static tree has the same
    at every step.
    """
    sees = torch.eye(len(parents) + 1, dtype=torch.bool)
    for node, parent in enumerate(parents):
        sees[node + 1] |= sees[0] if parent == ROOT else sees[parent + 1]
    return (0, *node_depths(parents)), sees
