"""Multi-token prediction: the target's own extra layer chains its guesses."""

from __future__ import annotations

from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.mtp import load_mtp
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.proposers.recurrent_head import MAX_DRAFTED, RecurrentHeadProposer
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig

FIRST_LAYER_ONLY = (
    "the checkpoint has {count} prediction layers; the bundled runtime uses the first for every drafted token"
)


class MtpProposer(RecurrentHeadProposer):
    """One layer, used again for each further token. The layer lies in the target's folder, or in one of its own."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> MtpProposer:
        """Raises SpecctlError and its kin for a checkpoint without such a layer or with one that cannot run here."""
        files = open_head(spec.model or str(target.folder), target.model, slots.max_len, spec.method.name)
        head = load_mtp(files)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        proposer = cls(head, drafted_tokens(spec, MAX_DRAFTED), slots, picker)
        count = files.prediction_layers
        if count > 1:
            proposer.notes = (FIRST_LAYER_ONLY.format(count=count),)
        return proposer
