"""What a proposer hands to verification, and what every proposer can do."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specctl.runtime.grammar import Grammar
from specctl.runtime.sequence import Sequence


@dataclass(frozen=True)
class Draft:
    """Drafted tokens in order. ``probs``: [k, vocab], what each was drawn from; None where each was picked without
    chance.
    """

    tokens: list[int]
    probs: Tensor | None = None

    def paths(self) -> list[list[int]]:
        """For each row that verifies this draft, the root's first, the drafted tokens that lead to it."""
        return [self.tokens[:place] for place in range(len(self.tokens) + 1)]


NO_DRAFT = Draft([])


def cut(draft: Draft, grammar: Grammar) -> Draft:
    """``draft`` without the tokens that cannot stand.

    Where it was drawn by chance, what is left was drawn among the allowed tokens, so its probabilities are those: with
    the old ones the answer would no longer follow the target's distribution.
    """
    count = grammar.legal(draft.tokens)
    if draft.probs is None:
        return draft if count == len(draft.tokens) else Draft(draft.tokens[:count])
    probs = draft.probs[:count].clone()
    banned = torch.zeros_like(probs)
    grammar.change(banned, [draft.tokens[:place] for place in range(count)])
    probs[banned < 0] = 0
    return Draft(draft.tokens[:count], probs / probs.sum(dim=-1, keepdim=True))


class Proposer(Protocol):
    """Proposes tokens for sequences that decode. Owns its memory and rolls it back itself.

    ``start`` comes once a sequence has its slot, ``observe`` after each step that gave it tokens, ``finish`` when it
    leaves. ``notes`` say where it does otherwise than the setting's own engine. ``propose`` answers one draft a
    sequence, of at most ``limits[i]`` tokens; shorter and empty drafts are fine.

    ``hidden_layers``: the target's hidden states that it lives on, see `specctl.runtime.models.hidden`. Where there are
    any, ``observe`` comes after each prefill chunk too, and ``hidden`` [m, layers * width] holds the states of the m
    positions that the step computed and that stand: ``num_computed - m`` to ``num_computed - 1``.
    """

    @property
    def num_speculative_tokens(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def hidden_layers(self) -> tuple[int, ...]: ...

    def start(self, sequence: Sequence) -> None: ...
    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]: ...
    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None: ...
    def finish(self, sequence: Sequence) -> None: ...
