"""Multi-token prediction: the target's own extra layers draft from its states."""

from __future__ import annotations

from specctl.errors import SpecctlError
from specctl.runtime.draft import Proposer
from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.heads.gemma_assistant import is_assistant
from specctl.runtime.models.heads.mtp import load_mtp
from specctl.runtime.models.loading import model_folder
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.proposers.gemma_assistant import GemmaAssistantProposer
from specctl.runtime.proposers.prediction_layers import PredictionLayersProposer
from specctl.runtime.proposers.recurrent_head import MAX_DRAFTED, RecurrentHeadProposer
from specctl.runtime.proposers.tree import make_shape
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig


class MtpProposer:
    """The layers lie in the target's folder or in one of their own. One layer chains all tokens, several take turns."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> Proposer:
        """Raises SpecctlError and its kin for a checkpoint without such layers or with one that cannot run here."""
        if spec.model and is_assistant(folder := model_folder(spec.model)):
            return GemmaAssistantProposer.load(folder, spec, target)
        files = open_head(
            spec.model or str(target.folder), target.model, slots.max_len, spec.method.name, slots.changes
        )
        heads, notes = load_mtp(files)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        k = drafted_tokens(spec, MAX_DRAFTED)
        if len(heads[:k]) == 1:
            proposer = RecurrentHeadProposer(heads[0], k, slots, picker, make_shape(spec, k))
        elif spec.tree is None:
            proposer = PredictionLayersProposer(heads[:k], k, slots, picker)
        else:
            raise SpecctlError(
                f"the {len(heads)} prediction layers of {files.folder} draft a chain, and the setting asks for a tree",
                help="leave out the tree",
            )
        proposer.notes = notes
        return proposer
