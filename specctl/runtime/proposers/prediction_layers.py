"""Drafting with several prediction layers: layer j drafts the token j places further from the output of the one before.

Row t of layer j is the output of layer j - 1 at row t with token t + 1 + j. So the deeper a layer, the earlier its rows
begin to rest on guessed tokens, and the more of them are run again after verification:

    tokens        x0 x1 x2 x3 | d1 d2       three states known, h0 to h2
    layer 0       0  1  2     |             with x1 x2 x3, all true
    layer 1       0  1  2*    |             row 2 with d1
    layer 2       0  1* 2*    |             row 1 with d1, row 2 with d2
    next draft    the last two rows again in every layer, then those of the new states

Where more tokens are asked for than there are layers, the last layer goes on by itself, as a single one does.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Any

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.heads.mtp import MtpHead
from specctl.runtime.proposers import Slots
from specctl.runtime.proposers.chain import Picker, draft_chain
from specctl.runtime.proposers.recurrent_head import MAX_WAITING, RecurrentHeadProposer
from specctl.runtime.sequence import Sequence


class PredictionLayersProposer(RecurrentHeadProposer):
    """``_computed[slot]``: rows that are true in every layer; ``_waiting[slot]``: the target's states from there on."""

    def __init__(self, heads: Many[MtpHead], k: int, slots: Slots, picker: Picker) -> None:
        super().__init__(heads[0], k, slots, picker)
        self._heads = heads

    def carry(self, source: int, slot: int, count: int) -> int:
        """The last layer's row t needs token t + len(heads)."""
        return self._left.carry(source, slot, count - len(self._heads), self._computed.get(source))

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep the true states; rows of a prompt whose tokens are known in every layer are run at once."""
        assert hidden is not None, "this proposer declares the states it needs"
        slot = sequence.slot
        self._waiting[slot].append(hidden)
        known = sum(len(part) for part in self._waiting[slot])
        # The last layer's row t needs token t + len(heads).
        ready = min(known, len(sequence.tokens) - len(self._heads) - self._computed[slot])
        if ready > MAX_WAITING:
            states = torch.cat(self._waiting[slot])
            rows, span = states[:ready], Span(slot, self._computed[slot], ready)
            for depth, head in enumerate(self._heads):
                tokens = sequence.tokens[span.start + 1 + depth : span.end + 1 + depth]
                _, rows = head.run(tokens, rows, [span], self._cache)
            self._settle(sequence, states, span.end)

    def _settle(self, sequence: Sequence, states: Tensor, true: int) -> None:
        """Rows before ``true`` are true in every layer; keep those of ``states``, the waiting ones, from there on."""
        slot = sequence.slot
        true = max(true, self._computed[slot])
        self._waiting[slot] = [states[true - self._computed[slot] :].clone()]
        self._computed[slot] = true

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        waiting = [torch.cat(self._waiting[sequence.slot]) for sequence in sequences]
        round_ = _Round(self._heads, sequences, [self._computed[s.slot] for s in sequences], waiting, self._cache)
        with torch.inference_mode():
            drafts = draft_chain(sequences, counts, round_.first(), round_.advance, self.picker)
        for sequence, states in zip(sequences, waiting, strict=True):
            self._settle(sequence, states, len(sequence.tokens) - len(self._heads))
        return drafts


class _Round:
    """One draft of many sequences: every layer in turn over the rows from ``begins`` on, then the last by itself."""

    def __init__(
        self, heads: Many[MtpHead], sequences: list[Sequence], begins: Many[int], waiting: Many[Tensor], cache: Any
    ) -> None:
        self._heads = heads
        self._cache = cache
        self._slots = [sequence.slot for sequence in sequences]
        self._ends = [len(sequence.tokens) - 1 for sequence in sequences]
        self._tokens = [sequence.tokens[begin + 1 :] for sequence, begin in zip(sequences, begins, strict=True)]
        self._counts = [len(states) for states in waiting]
        places = zip(self._slots, begins, self._counts, strict=True)
        self._spans = [Span(slot, begin, count) for slot, begin, count in places]
        self._states = torch.cat(list(waiting))
        self._lasts = torch.tensor(self._counts, device=self._states.device).cumsum(0) - 1
        self._drafted = 0

    def first(self) -> Tensor:
        """Logits [n, vocab] of each sequence's first token."""
        return self._layer(0)

    def _layer(self, depth: int) -> Tensor:
        parts = zip(self._tokens, self._counts, strict=True)
        tokens = [token for own, count in parts for token in own[depth : depth + count]]
        scored, self._states = self._heads[depth].run(tokens, self._states, self._spans, self._cache)
        return self._heads[depth].score(scored[self._lasts])

    def advance(self, active: list[int], tokens: list[int]) -> Tensor:
        """Logits after each token; sequences that are done take any token, their rows are run again anyway."""
        self._drafted += 1
        picked = dict(zip(active, tokens, strict=True))
        if self._drafted < len(self._heads):
            for place, own in enumerate(self._tokens):
                own.append(picked.get(place, 0))
            return self._layer(self._drafted)[torch.tensor(active, device=self._states.device)]
        if self._drafted == len(self._heads):
            self._states = self._states[self._lasts]
        beyond = self._drafted - len(self._heads)
        spans = [Span(self._slots[i], self._ends[i] + beyond, 1) for i in active]
        chosen = torch.tensor(active, device=self._states.device)
        head = self._heads[-1]
        scored, self._states[chosen] = head.run(tokens, self._states[chosen], spans, self._cache)
        return head.score(scored)
