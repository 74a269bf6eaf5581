"""What drafts from the newest true state alone, without a cache: Medusa's heads and MLP speculators.

The state they need is that of the last token that stands and has been computed, the one that produced the newest token;
not the last row of the verified batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.proposers.chain import Advance, Picker, draft_chain, draft_for
from specctl.runtime.proposers.tree import Expand, Shape, draft_tree
from specctl.runtime.sequence import Sequence


class NewestState(ABC):
    """``_states[slot]`` [layers * hidden]: the state that produced the newest token."""

    notes: tuple[str, ...] = ()

    def __init__(self, hidden_layers: tuple[int, ...], k: int, picker: Picker, shape: Shape | None = None) -> None:
        self.hidden_layers = hidden_layers
        self._k = k
        self._shape = shape
        self.picker = picker
        self._states: dict[int, Tensor] = {}

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._shape.num_nodes if self._shape else self._k

    def start(self, sequence: Sequence) -> None:
        """Nothing is known before the first state."""
        self._states.pop(sequence.slot, None)

    def carry(self, source: int, slot: int, count: int) -> int:
        """All: the newest state comes with the last prompt token, which is always computed."""
        del source, slot
        return count

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep the newest state; a copy, so that a prompt's other states can go."""
        assert hidden is not None, "this proposer declares the states it needs"
        self._states[sequence.slot] = hidden[-1].clone()

    def finish(self, sequence: Sequence) -> None:
        self._states.pop(sequence.slot, None)

    def forget(self) -> None:  # noqa: B027 – there is nothing to do for any of its kind
        """Nothing outlives a request."""

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """k tokens deep, less where a sequence's limit is lower."""
        return draft_for(sequences, [min(self._k, limit) for limit in limits], self._draft)

    @abstractmethod
    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        """``counts[i]`` (at least 1) tokens deep for each sequence."""


class LastStateProposer(NewestState):
    """What needs that state and nothing else."""

    @torch.inference_mode()
    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        states = torch.stack([self._states[sequence.slot] for sequence in sequences])
        newest = [sequence.tokens[-1] for sequence in sequences]
        if self._shape:
            logits, expand = self.begin_trees(states, newest)
            return draft_tree(sequences, counts, logits, expand, self.picker, self._shape)
        logits, advance = self.begin(states, newest)
        return draft_chain(sequences, counts, logits, advance, self.picker)

    @abstractmethod
    def begin(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Advance]:
        """Logits [n, draft vocab] after the newest ``tokens``, whose ``states`` [n, hidden] those are, and how a chain
        goes on from there.
        """

    @abstractmethod
    def begin_trees(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Expand]:
        """As `begin`, and how trees go on."""
