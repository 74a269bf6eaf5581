"""Gemma 4's assistants: a chain over the target's own keys and values, nothing to keep and nothing to roll back."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.draft import Draft
from specctl.runtime.models.flat_step import LayeredCache
from specctl.runtime.models.heads.gemma_assistant import GemmaAssistant, load_assistant
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.proposers import drafted_tokens
from specctl.runtime.proposers.chain import Picker, draft_chain
from specctl.runtime.proposers.last_state import NewestState
from specctl.runtime.proposers.recurrent_head import MAX_DRAFTED
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig


class GemmaAssistantProposer(NewestState):
    """``share`` hands it the target's cache before the first draft."""

    def __init__(self, assistant: GemmaAssistant, k: int, picker: Picker) -> None:
        super().__init__((FINAL,), k, picker)
        self._assistant = assistant
        self._cache: LayeredCache | None = None

    @classmethod
    def load(cls, folder: Path, spec: SpecDecodeConfig, target: Target) -> GemmaAssistantProposer:
        """Raises SpecctlError and its kin for an assistant that is damaged or for another target."""
        if spec.tree is not None:
            raise SpecctlError(
                f"{folder} is an assistant of Gemma 4 and drafts a chain, and the setting asks for a tree",
                help="leave out the tree",
            )
        assistant = load_assistant(folder, target.model, target.name)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        return cls(assistant, drafted_tokens(spec, MAX_DRAFTED), picker)

    def share(self, cache: LayeredCache) -> None:
        """Read the target's keys and values here."""
        self._cache = cache

    @torch.inference_mode()
    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        assert self._cache is not None, "the engine shares its cache"
        cache, states = self._cache, torch.stack([self._states[sequence.slot] for sequence in sequences])

        def advance(active: list[int], tokens: list[int]) -> Tensor:
            chosen = torch.tensor(active, device=states.device)
            slots = [sequences[i].slot for i in active]
            standing = [len(sequences[i].tokens) - 1 for i in active]
            logits, states[chosen] = self._assistant.forward(tokens, states[chosen], slots, standing, cache)
            return logits

        first = advance(list(range(len(sequences))), [sequence.tokens[-1] for sequence in sequences])
        return draft_chain(sequences, counts, first, advance, self.picker)
