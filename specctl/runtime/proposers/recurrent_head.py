"""Drafting with a head that has its own KV cache: which rows it is fed, and which of them may stay.

Row t is the target's state at t with token t + 1. Rows made from the head's own guesses are scratch: after verification
their places are written again from the target's true states, and the last of these rows is the next draft's first.

    tokens      x0 x1 x2 x3 | d1 d2 d3        3 drafted, d1 accepted, then y
    true rows   0  1  2     |                 before: the head has seen h0..h2 with x1..x3
    guesses                 3  4              drafted from, then worthless
    catch-up                3  4              h3 with d1, h4 with y: drafts what follows y
"""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.heads.base import RecurrentHead
from specctl.runtime.proposers import Slots
from specctl.runtime.proposers.chain import Picker, draft_chain, draft_for
from specctl.runtime.proposers.left_rows import LeftRows
from specctl.runtime.proposers.tree import Expand, Scratch, Shape, Twig, draft_tree
from specctl.runtime.sequence import Sequence

MAX_DRAFTED = 128
# States that wait for the next draft; what goes beyond (a prompt) is fed at once, so that its states can go.
MAX_WAITING = 32


class RecurrentHeadProposer:
    """``_computed[slot]``: rows of the head's cache that rest on true states; ``_waiting[slot]``: the true states of
    the rows after those, one tensor [m, layers * hidden] an observed step.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, head: RecurrentHead, k: int, slots: Slots, picker: Picker, shape: Shape | None = None) -> None:
        self._head = head
        self._k = k
        self.picker = picker
        self._shape = shape
        self._cache = head.make_cache(slots.count, slots.max_len + (shape.num_expanded if shape else 0))
        self.rows = slots.ledger()
        self._computed: dict[int, int] = {}
        self._waiting: dict[int, list[Tensor]] = {}
        self._left = LeftRows(self._cache, self.rows)
        self.hidden_layers = head.hidden_layers

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._shape.num_nodes if self._shape else self._k

    def start(self, sequence: Sequence) -> None:
        self._computed[sequence.slot] = self._left.begin(sequence.slot, carried=sequence.num_computed > 0)
        self._waiting[sequence.slot] = []

    def carry(self, source: int, slot: int, count: int) -> int:
        """Row t needs token t + 1, so the last of the shared tokens has none yet; where rows are missing, their states
        must be computed again.
        """
        return self._left.carry(source, slot, count - 1, self._computed.get(source))

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep the true states until the next draft; feed the rows of a prompt at once, all but the last."""
        assert hidden is not None, "this proposer declares the states it needs"
        waiting = self._waiting[sequence.slot]
        waiting.append(hidden)
        count = sum(len(part) for part in waiting)
        if count > MAX_WAITING:
            states = torch.cat(waiting)
            self._feed([sequence], [states[:-1]])
            self._waiting[sequence.slot] = [states[-1:].clone()]

    def _feed(self, sequences: Many[Sequence], hidden: Many[Tensor]) -> tuple[Tensor, Tensor]:
        """Run the rows of ``hidden`` [m, layers * hidden] of each sequence, the next that its cache lacks.

        Answers logits and state of each sequence's last row.
        """
        spans, tokens, rows = [], [], []
        for sequence, states in zip(sequences, hidden, strict=True):
            begin = self._computed[sequence.slot]
            if self.rows:
                self.rows.check(sequence.slot, sequence.tokens[1 : begin + 1])
            span = Span(sequence.slot, begin, len(states))
            spans.append(span)
            tokens += sequence.tokens[begin + 1 : span.end + 1]
            rows.append(len(tokens) - 1)
            self._computed[sequence.slot] = span.end
        if self.rows:
            self.rows.wrote(tokens, spans)
        states = self._head.enter(torch.cat(list(hidden)))
        return self._head.forward(tokens, states, spans, self._cache, rows)

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """Catch up with the true states, then draft k tokens deep, less where a sequence's limit is lower."""
        return draft_for(sequences, [min(self._k, limit) for limit in limits], self._draft)

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        logits, states = self._feed(sequences, [torch.cat(self._waiting[s.slot]) for s in sequences])
        ends = [len(sequence.tokens) - 1 for sequence in sequences]
        for sequence in sequences:
            self._waiting[sequence.slot] = []

        def advance(active: list[int], tokens: list[int]) -> Tensor:
            spans = [Span(sequences[i].slot, ends[i], 1) for i in active]
            for i in active:
                ends[i] += 1
            if self.rows:
                self.rows.wrote(tokens, spans, guessed=True)
            chosen = torch.tensor(active, device=states.device)
            scored, fed = self._head.forward(tokens, states[chosen], spans, self._cache, range(len(tokens)))
            states[chosen] = fed
            return scored

        with torch.inference_mode():
            if self._shape:
                expand = self._expander([s.slot for s in sequences], ends, states)
                return draft_tree(sequences, counts, logits, expand, self.picker, self._shape)
            return draft_chain(sequences, counts, logits, advance, self.picker)

    def _expander(self, slots: list[int], trunks: list[int], states: Tensor) -> Expand:
        """Rows for the nodes of trees: a node's token with the state that its parent handed on."""
        scratch = Scratch(slots, trunks)

        def expand(twigs: list[Twig]) -> Tensor:
            nonlocal states
            entering = states[torch.tensor([twig.row for twig in twigs], device=states.device)]
            tokens = [twig.token for twig in twigs]
            spans = scratch.spans(twigs)
            if self.rows:
                self.rows.wrote(tokens, spans, guessed=True)
            logits, states = self._head.forward(tokens, entering, spans, self._cache, range(len(tokens)))
            return logits

        return expand

    def finish(self, sequence: Sequence) -> None:
        self._left.leave(sequence.slot, self._computed.pop(sequence.slot, 0))
        self._waiting.pop(sequence.slot, None)

    def forget(self) -> None:
        """Nothing outlives a request."""
