"""EAGLE-1/2 and EAGLE-3/3.1: a chain from one small head over the target's states."""

from __future__ import annotations

from specctl.errors import SpecctlError
from specctl.runtime.models.heads.eagle import load_eagle
from specctl.runtime.models.heads.eagle3 import load_eagle3
from specctl.runtime.models.heads.files import HeadFiles, open_head
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.proposers.recurrent_head import MAX_DRAFTED, RecurrentHeadProposer
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Eagle, Eagle3


def _open(spec: SpecDecodeConfig, target: Target, slots: Slots, parallel: bool) -> HeadFiles:
    if parallel:
        raise SpecctlError(
            "parallel_drafting of EAGLE heads does not run on the bundled runtime",
            help="leave it out where the head can also chain, or run it on the engine it is for",
        )
    assert spec.model is not None, "a spec of this method names its head"
    return open_head(spec.model, target.model, slots.max_len)


class EagleProposer(RecurrentHeadProposer):
    """EAGLE-1; EAGLE-2's checkpoints are the same."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> EagleProposer:
        """Raises SpecctlError and its kin for a head that is absent, damaged or for another target."""
        method = spec.method
        assert isinstance(method, Eagle), "the table maps names to their own classes"
        head = load_eagle(_open(spec, target, slots, method.parallel_drafting))
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        return cls(head, drafted_tokens(spec, MAX_DRAFTED), slots, picker)


class Eagle3Proposer(RecurrentHeadProposer):
    """EAGLE-3 and 3.1."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> Eagle3Proposer:
        """k is the checkpoint's where the setting names none. Raises SpecctlError and its kin for a head that is
        absent, damaged, for another target, or whose taps could mean two things.
        """
        method = spec.method
        assert isinstance(method, Eagle3), "the table maps names to their own classes"
        files = _open(spec, target, slots, method.parallel_drafting)
        head = load_eagle3(files, method.aux_layers)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic", head.vocabulary)
        return cls(head, drafted_tokens(spec, MAX_DRAFTED, files.proposed_tokens), slots, picker)
