"""MLP speculator: one state a sequence takes in its own guesses, token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.mlp_speculator import MlpSpeculatorHead, load_mlp_speculator
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Advance, Picker
from specctl.runtime.proposers.last_state import LastStateProposer
from specctl.runtime.proposers.tree import Expand, Shape, Twig, make_shape
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig


class MlpSpeculatorProposer(LastStateProposer):
    """Drafts at most as many tokens deep as the checkpoint has steps."""

    def __init__(self, head: MlpSpeculatorHead, k: int, picker: Picker, shape: Shape | None = None) -> None:
        super().__init__(head.hidden_layers, k, picker, shape)
        self._head = head

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> MlpSpeculatorProposer:
        """k is the number of steps where the setting names none. Raises SpecctlError and its kin for a checkpoint that
        is absent, damaged, for another target, or of fewer steps than asked for.
        """
        assert spec.model is not None, "a spec of this method names its checkpoint"
        files = open_head(spec.model, target.model, slots.max_len, spec.method.name, slots.changes)
        head = load_mlp_speculator(files)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        k = drafted_tokens(spec, head.count, (spec.tree and spec.tree.depth) or head.count)
        proposer = cls(head, k, picker, make_shape(spec, k))
        tied = ("", "speculator.") if files.config.get("tie_weights") else ()  # one step's tensors serve all
        proposer.notes = files.unused(*tied)
        return proposer

    def begin(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Advance]:
        step = 0
        logits, current = self._head.forward(self._head.enter(states), tokens, 0)

        def advance(active: list[int], tokens: list[int]) -> Tensor:
            nonlocal step
            step += 1
            chosen = torch.tensor(active, device=states.device)
            scored, current[chosen] = self._head.forward(current[chosen], tokens, step)
            return scored

        return logits, advance

    def begin_trees(self, states: Tensor, tokens: list[int]) -> tuple[Tensor, Expand]:
        step = 0
        logits, current = self._head.forward(self._head.enter(states), tokens, 0)

        def expand(twigs: list[Twig]) -> Tensor:
            nonlocal step, current
            step += 1
            entering = current[torch.tensor([twig.row for twig in twigs], device=states.device)]
            scored, current = self._head.forward(entering, [twig.token for twig in twigs], step)
            return scored

        return logits, expand
