"""P-EAGLE: a head that drafts all places in one forward, from stand-ins for the states and tokens that are not there
yet.
"""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.proposers import Slots
from specctl.runtime.proposers.chain import Picker, draft_filled
from specctl.runtime.proposers.recurrent_head import RecurrentHeadProposer
from specctl.runtime.sequence import Sequence


class ParallelHeadProposer(RecurrentHeadProposer):
    """The last true row scores the first token; each of k - 1 rows behind it, made of ``mask`` and ``mask_hidden``
    [layers * hidden], one more. These rows are scratch.
    """

    def __init__(
        self, head: RecurrentHead, k: int, slots: Slots, picker: Picker, mask: int, mask_hidden: Tensor
    ) -> None:
        super().__init__(head, k, slots, picker)
        self._mask = mask
        self._mask_hidden = mask_hidden

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        spans: list[Span] = []
        tokens: list[int] = []
        states: list[Tensor] = []
        rows: list[int] = []
        for sequence, count in zip(sequences, counts, strict=True):
            begin, true = self._computed[sequence.slot], torch.cat(self._waiting[sequence.slot])
            self._computed[sequence.slot] = begin + len(true)
            self._waiting[sequence.slot] = []
            spans.append(Span(sequence.slot, begin, len(true) + count - 1))
            tokens += [*sequence.tokens[begin + 1 : begin + 1 + len(true)], *[self._mask] * (count - 1)]
            states += [true, self._mask_hidden.expand(count - 1, -1)]
            rows += range(len(tokens) - count, len(tokens))
        if self.rows:
            self.rows.wrote(tokens, spans)
        entered = self._head.enter(torch.cat(states))
        logits, _ = self._head.forward(tokens, entered, spans, self._cache, rows)
        return draft_filled(sequences, counts, logits, self.picker)
