"""What a proposer hands to verification, and what every proposer can do."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from specctl.runtime.grammar import Grammar
from specctl.runtime.sequence import Sequence

ROOT = -1


@dataclass(frozen=True)
class Draft:
    """Drafted tokens in order; of a tree, each behind the one it follows.

    ``probs`` [len(tokens), vocab]: what each was drawn from, None where each was picked without chance. ``parents[i]``:
    the drafted token that token i follows, `ROOT` for the newest token that stands; None for a chain, where each
    follows the one before it. Siblings are different tokens; with ``probs`` they were drawn in their order, without
    replacement, from one distribution.
    """

    tokens: list[int]
    probs: Tensor | None = None
    parents: tuple[int, ...] | None = None

    @property
    def depth(self) -> int:
        """Tokens that can stand at most."""
        return len(self.tokens) if self.parents is None else max(node_depths(self.parents), default=0)

    def paths(self) -> list[list[int]]:
        """For each row that verifies this draft, the root's first, the drafted tokens that lead to it."""
        if self.parents is None:
            return [self.tokens[:place] for place in range(len(self.tokens) + 1)]
        found: list[list[int]] = [[]]
        for token, parent in zip(self.tokens, self.parents, strict=True):
            found.append([*found[parent + 1], token])
        return found


def node_depths(parents: Many[int]) -> list[int]:
    """The place of each node on its path, the first is 1."""
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent == ROOT else depths[parent] + 1)
    return depths


NO_DRAFT = Draft([])


def cut(draft: Draft, grammar: Grammar) -> Draft:
    """``draft`` without the tokens that cannot stand.

    Where it was drawn by chance, what is left was drawn among the allowed tokens, so its probabilities are those: with
    the old ones the answer would no longer follow the target's distribution.
    """
    paths = draft.paths()[1:]
    if draft.parents is None:
        kept = list(range(grammar.legal(draft.tokens)))
    else:
        kept = [node for node, path in enumerate(paths) if grammar.legal(path) == len(path)]
    if len(kept) == len(paths) and draft.probs is None:
        return draft
    probs = None if draft.probs is None else _among_allowed(draft.probs[kept], [paths[i][:-1] for i in kept], grammar)
    return Draft([draft.tokens[node] for node in kept], probs, draft.parents and _renumbered(draft.parents, kept))


def _among_allowed(probs: Tensor, paths: list[list[int]], grammar: Grammar) -> Tensor:
    banned = torch.zeros_like(probs)
    grammar.change(banned, paths)
    probs = probs.masked_fill(banned < 0, 0)
    return probs / probs.sum(dim=-1, keepdim=True)


def _renumbered(parents: tuple[int, ...], kept: list[int]) -> tuple[int, ...]:
    places = {ROOT: ROOT} | {node: place for place, node in enumerate(kept)}
    return tuple(places[parents[node]] for node in kept)


class Proposer(Protocol):
    """Proposes tokens for sequences that decode. Owns its memory and rolls it back itself.

    ``start`` comes once a sequence has its slot, ``observe`` after each step that gave it tokens, ``finish`` when it
    leaves; ``forget`` drops what is kept for later requests, while none runs. ``notes`` say where it does otherwise
    than the setting's own engine. ``propose`` answers one draft a sequence, at most ``limits[i]`` tokens deep; shorter
    and empty drafts are fine. ``num_speculative_tokens`` is the depth it reaches at most, ``num_draft_tokens`` the
    drafted tokens: more than that where it drafts trees.

    ``hidden_layers``: the target's hidden states that it lives on, see `specctl.runtime.models.hidden`. Where there are
    any, ``observe`` comes after each prefill chunk too, and ``hidden`` [m, layers * width] holds the states of the m
    positions that the step computed and that stand: ``num_computed - m`` to ``num_computed - 1``.
    """

    @property
    def num_speculative_tokens(self) -> int: ...
    @property
    def num_draft_tokens(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def hidden_layers(self) -> tuple[int, ...]: ...

    def start(self, sequence: Sequence) -> None: ...
    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]: ...
    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None: ...
    def finish(self, sequence: Sequence) -> None: ...
    def forget(self) -> None: ...


@runtime_checkable
class SharesCache(Protocol):
    """A proposer that reads the target's own cache; it is handed over once, before the first draft."""

    def share(self, cache: Any) -> None: ...
