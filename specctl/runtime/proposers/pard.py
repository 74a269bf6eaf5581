"""PARD (arXiv 2504.18583): a draft model that fills mask tokens, so that one forward drafts all k tokens.

The forward holds what stands and is new to the draft, and k - 1 masks; the row of the newest token scores the first
drafted token, the rows of the masks the others. The masks leave the cache at once.
"""

from __future__ import annotations

import json
from typing import Self

from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.loading import model_folder
from specctl.runtime.proposers import Slots
from specctl.runtime.proposers.chain import draft_filled
from specctl.runtime.proposers.draft_model import DraftModelProposer
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Pard

_MASK_KEYS = ("mask_token_id", "pard_token", "ptd_token_id")


class PardProposer(DraftModelProposer):
    """`_mask`: the token that stands for a place to be filled."""

    _mask: int

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> Self:
        """Raises SpecctlError where neither setting nor checkpoint names the mask token, else as the draft model's."""
        assert isinstance(spec.method, Pard), "the table maps names to their own classes"
        assert spec.model is not None, "a spec of this method names its draft"
        path = model_folder(spec.model) / "config.json"
        config = json.loads(path.read_text("utf-8"))
        named = [spec.method.mask_token_id, *(config.get(key) for key in _MASK_KEYS)]
        mask = next((each for each in named if isinstance(each, int)), None)
        vocab = config.get("vocab_size")
        if mask is None or not 0 <= mask < (vocab or mask + 1):
            raise SpecctlError(
                f"the mask token of {spec.model!r} is {mask}; {path} names none under {', '.join(_MASK_KEYS)} that its "
                f"vocabulary of {vocab} has",
                help="set mask_token_id, or use method draft_model if the draft was not trained with masks",
            )
        proposer = super().from_spec(spec, target, slots)
        proposer._mask = mask
        proposer._model.keep(mask)
        return proposer

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        return draft_filled(sequences, counts, self._fill(sequences, counts), self.picker)

    def _fill(self, sequences: list[Sequence], counts: list[int]) -> Tensor:
        """Logits [sum(counts), vocab] of each sequence's drafted places, one sequence after the other."""
        spans: list[Span] = []
        flat: list[int] = []
        rows: list[int] = []
        for sequence, count in zip(sequences, counts, strict=True):
            self._prefill(sequence)
            begin = self._computed[sequence.slot]
            fresh = [*sequence.tokens[begin:], *[self._mask] * (count - 1)]
            spans.append(Span(sequence.slot, begin, len(fresh)))
            flat += fresh
            rows += range(len(flat) - count, len(flat))
            self._computed[sequence.slot] = len(sequence.tokens)
        return self._model.forward(flat, spans, self._cache, rows)
