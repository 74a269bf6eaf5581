"""EAGLE-1/2 and EAGLE-3/3.1: chains and trees from one small head over the target's states."""

from __future__ import annotations

from specctl.errors import SpecctlError
from specctl.runtime.models.heads.eagle import load_eagle
from specctl.runtime.models.heads.eagle3 import load_eagle3, load_stand_ins
from specctl.runtime.models.heads.files import HeadFiles, open_head
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.proposers.parallel_head import ParallelHeadProposer
from specctl.runtime.proposers.recurrent_head import MAX_DRAFTED, RecurrentHeadProposer
from specctl.runtime.proposers.tree import make_shape
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Eagle, Eagle3

# Copies of the target's own, and what training alone reads.
_UNREAD = ("t2d", "lm_head.", "embed_tokens.", "verifier_", "rotary_emb.", "layers.0.self_attn.rotary_emb.")


def _open(spec: SpecDecodeConfig, target: Target, slots: Slots) -> HeadFiles:
    assert spec.model is not None, "a spec of this method names its head"
    return open_head(spec.model, target.model, slots.max_len, spec.method.name, slots.changes)


class EagleProposer(RecurrentHeadProposer):
    """EAGLE-1; EAGLE-2's checkpoints are the same."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> EagleProposer:
        """Raises SpecctlError and its kin for a head that is absent, damaged or for another target."""
        method = spec.method
        assert isinstance(method, Eagle), "the table maps names to their own classes"
        if method.parallel_drafting:
            raise SpecctlError(
                "parallel_drafting of an EAGLE-1 head does not run on the bundled runtime",
                help="leave it out; the head chains its tokens",
            )
        files = _open(spec, target, slots)
        head = load_eagle(files)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic")
        k = drafted_tokens(spec, MAX_DRAFTED, files.proposed_tokens)
        proposer = cls(head, k, slots, picker, make_shape(spec, k))
        proposer.notes = files.unused(*_UNREAD)
        return proposer


class Eagle3Proposer(RecurrentHeadProposer):
    """EAGLE-3, 3.1 and the parallel P-EAGLE."""

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> RecurrentHeadProposer:
        """k is the checkpoint's where the setting names none; a head made for it drafts in parallel.

        Raises SpecctlError and its kin for a head that is absent, damaged, for another target, that cannot do what the
        setting says, or whose taps could mean two things.
        """
        method = spec.method
        assert isinstance(method, Eagle3), "the table maps names to their own classes"
        files = _open(spec, target, slots)
        head = load_eagle3(files, method.aux_layers)
        picker = Picker(target.vocab_size, spec.draft_sample_method == "probabilistic", head.vocabulary)
        k = drafted_tokens(spec, MAX_DRAFTED, files.proposed_tokens)
        if "mask_hidden" in files.weights:
            if spec.tree is not None:
                raise SpecctlError(
                    f"the head {files.folder} drafts all its tokens at once, as a chain; the setting asks for a tree",
                    help="leave out the tree",
                )
            mask = load_stand_ins(files, head)
            parallel = ParallelHeadProposer(head, k, slots, picker, *mask)
            parallel.notes = files.unused(*_UNREAD)
            return parallel
        if method.parallel_drafting:
            raise SpecctlError(
                f"parallel_drafting is set, but {files.folder} has no tensor 'mask_hidden'",
                help="leave parallel_drafting out; this head chains its tokens",
            )
        proposer = cls(head, k, slots, picker, make_shape(spec, k))
        proposer.notes = files.unused(*_UNREAD)
        return proposer
