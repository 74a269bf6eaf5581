"""MLP speculator: one state a sequence takes in its own guesses, token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.mlp_speculator import MlpSpeculatorHead, load_mlp_speculator
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Advance, Picker
from specctl.runtime.proposers.last_state import LastStateProposer
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig


class MlpSpeculatorProposer(LastStateProposer):
    """A chain of at most as many tokens as the checkpoint has steps."""

    def __init__(self, head: MlpSpeculatorHead, k: int, picker: Picker) -> None:
        super().__init__(head.hidden_layers, k, picker)
        self._head = head

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> MlpSpeculatorProposer:
        """k is the number of steps where the setting names none. Raises SpecctlError and its kin for a checkpoint that
        is absent, damaged, for another target, or of fewer steps than asked for.
        """
        assert spec.model is not None, "a spec of this method names its checkpoint"
        head = load_mlp_speculator(open_head(spec.model, target.model, slots.max_len, spec.method.name))
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        return cls(head, drafted_tokens(spec, head.count, head.count), picker)

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
