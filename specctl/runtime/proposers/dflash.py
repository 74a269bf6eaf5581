"""DFlash: the target's states are the draft's context, a block of masks behind them is filled in one forward."""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.heads.dflash import DFlashHead, load_dflash
from specctl.runtime.models.heads.files import open_head
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Picker, draft_filled, draft_for
from specctl.runtime.proposers.left_rows import LeftRows
from specctl.runtime.proposers.recurrent_head import MAX_WAITING
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DFlash


class DFlashProposer:
    """``_kept[slot]``: positions whose states are in the draft's cache; ``_waiting[slot]``: the states after those.

    A block is written behind the context and overwritten by the next states, so nothing needs rolling back.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, head: DFlashHead, k: int, slots: Slots, picker: Picker) -> None:
        self._head = head
        self._k = k
        self.picker = picker
        self._cache = head.make_cache(slots.count, slots.max_len)
        self._kept: dict[int, int] = {}
        self._waiting: dict[int, list[Tensor]] = {}
        self._left = LeftRows(self._cache)
        self.hidden_layers = head.hidden_layers

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> DFlashProposer:
        """k is what the block holds beside the newest token where the setting names none.

        Raises SpecctlError and its kin for a draft that is absent, damaged or for another target.
        """
        method = spec.method
        assert isinstance(method, DFlash), "the table maps names to their own classes"
        assert spec.model is not None, "a spec of this method names its draft"
        files = open_head(spec.model, target.model, slots.max_len, spec.method.name, slots.changes)
        head = load_dflash(files, method.target_layer_ids, method.mask_token_id)
        most = head.block_size - 1
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic", head.vocabulary)
        proposer = cls(head, drafted_tokens(spec, most, most), slots, picker)
        proposer.notes = files.unused("t2d", "verifier_", "rotary_emb.")
        return proposer

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._k

    def start(self, sequence: Sequence) -> None:
        self._kept[sequence.slot] = self._left.begin(sequence.slot, carried=sequence.num_computed > 0)
        self._waiting[sequence.slot] = []

    def carry(self, source: int, slot: int, count: int) -> int:
        """As many positions as the draft's cache holds; the states of the others must be computed again."""
        return self._left.carry(source, slot, count, self._kept.get(source))

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep the states until the next draft; those of a prompt enter the cache at once."""
        assert hidden is not None, "this proposer declares the states it needs"
        self._waiting[sequence.slot].append(hidden)
        if sum(len(part) for part in self._waiting[sequence.slot]) > MAX_WAITING:
            self._keep([sequence])

    def _keep(self, sequences: Many[Sequence]) -> None:
        """Move the waiting states of ``sequences`` into the cache."""
        spans, states = [], []
        for sequence in sequences:
            waiting = self._waiting[sequence.slot]
            count = sum(len(part) for part in waiting)
            if count == 0:
                continue
            spans.append(Span(sequence.slot, self._kept[sequence.slot], count))
            states += waiting
            self._kept[sequence.slot] += count
            self._waiting[sequence.slot] = []
        if spans:
            self._head.keep(torch.cat(states), spans, self._cache)

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """k tokens a sequence, fewer where its limit is lower."""
        return draft_for(sequences, [min(self._k, limit) for limit in limits], self._draft)

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        self._keep(sequences)
        spans: list[Span] = []
        tokens: list[int] = []
        rows: list[int] = []
        for sequence, count in zip(sequences, counts, strict=True):
            spans.append(Span(sequence.slot, len(sequence.tokens) - 1, count + 1))
            tokens += [sequence.tokens[-1], *[self._head.mask] * count]
            rows += range(len(tokens) - count, len(tokens))
        logits = self._head.fill(tokens, spans, self._cache, rows)
        return draft_filled(sequences, counts, logits, self.picker)

    def finish(self, sequence: Sequence) -> None:
        self._left.leave(sequence.slot, self._kept.pop(sequence.slot, 0))
        self._waiting.pop(sequence.slot, None)

    def forget(self) -> None:
        """Nothing outlives a request."""
