"""What heads with a KV cache of their own have in common: one row is a hidden state and the token after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.kv_cache import KVCache, Span
from specctl.runtime.models.stack import Place, Stack


class RecurrentHead(ABC):
    """Row t takes the state at t and the embedding of token t + 1 and scores token t + 2.

    ``hidden_layers``: the target's states that it reads. ``embedding`` [vocab, width]; ``head`` [draft vocab, width];
    ``vocabulary``: target ids of the draft vocabulary, None where they are the same.
    """

    def __init__(
        self,
        hidden_layers: tuple[int, ...],
        stack: Stack,
        embedding: Tensor,
        head: Tensor,
        vocabulary: Tensor | None = None,
    ) -> None:
        self.hidden_layers = hidden_layers
        self.stack = stack
        self.embedding = embedding
        self.head = head
        self.vocabulary = vocabulary

    def make_cache(self, num_slots: int, max_len: int) -> KVCache:
        """An empty cache; entry t of a slot belongs to row t."""
        return self.stack.make_cache(num_slots, max_len)

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], states: Tensor, spans: Sequence[Span], cache: KVCache, rows: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Logits [len(rows), draft vocab] of the batch rows ``rows`` and the states [len(rows), width] that the head
        itself hands to its next row. ``states``: [T, width], each from `enter` or from here.
        """
        embedded = F.embedding(torch.tensor(tokens, device=self.embedding.device), self.embedding)
        out = self.body(embedded, states, self.stack.place(spans, cache))
        if len(rows) != len(tokens):
            out = out.index_select(0, torch.tensor(rows, device=out.device))
        scored, fed = self.leave(out)
        return self.stack.linear(scored, self.head), fed

    def enter(self, hidden: Tensor) -> Tensor:
        """The target's states [T, layers * hidden] as the head's layers want them: [T, width]."""
        return hidden

    @abstractmethod
    def body(self, embedded: Tensor, states: Tensor, place: Place) -> Tensor:
        """The stream [T, width] after the layers."""

    @abstractmethod
    def leave(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """What the vocabulary head multiplies, and what the next row takes as its state."""
