"""Medusa: each head guesses its own place ahead from the same state, so the guesses do not depend on each other."""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.medusa import MedusaHeads, load_medusa
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Advance, Picker
from specctl.runtime.proposers.last_state import LastStateProposer
from specctl.runtime.proposers.tree import Expand, Shape, Twig, make_shape
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig


class MedusaProposer(LastStateProposer):
    """The chain of each head's best guess, as vLLM serves it, or a tree of their best guesses."""

    def __init__(self, heads: MedusaHeads, k: int, picker: Picker, shape: Shape | None = None) -> None:
        super().__init__(heads.hidden_layers, k, picker, shape)
        self._heads = heads

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> MedusaProposer:
        """k is the depth of a static tree, else the number of heads, where the setting names none.

        Raises SpecctlError and its kin for heads that are absent, damaged, for another target, or fewer than asked for.
        """
        assert spec.model is not None, "a spec of this method names its heads"
        files = open_head(spec.model, target.model, slots.max_len, spec.method.name, slots.changes)
        heads = load_medusa(files)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic", heads.vocabulary)
        k = drafted_tokens(spec, heads.count, (spec.tree and spec.tree.depth) or heads.count)
        proposer = cls(heads, k, picker, make_shape(spec, k))
        proposer.notes = files.unused("model.", "lm_head.")  # a merged checkpoint holds its target too
        return proposer

    def begin(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Advance]:
        step = 0

        def advance(active: list[int], _tokens: list[int]) -> Tensor:
            nonlocal step
            step += 1
            return self._heads.forward(states[torch.tensor(active, device=states.device)], step)

        return self._heads.forward(states, 0), advance

    def begin_trees(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Expand]:
        step = 0

        def expand(twigs: list[Twig]) -> Tensor:
            nonlocal step
            step += 1
            # A head knows nothing of the tokens before its place: all nodes of a depth share its guesses.
            return self._heads.forward(states, step)[torch.tensor([t.owner for t in twigs], device=states.device)]

        return self._heads.forward(states, 0), expand
