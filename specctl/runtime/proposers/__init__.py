"""Door sign: the ways of drafting, one file a method, and the one table that names them.

Here: what proposes tokens and the memory it keeps for that. Not here: verification, scheduling, settings. May enter:
the rest of `specctl.runtime`, through `make_proposer`; the engine itself never learns which method it runs.

A new method is one file with a class that has `from_spec(spec, target, slots)` and one row below.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from specctl.errors import SpecctlError
from specctl.runtime.integrity import RowLedger
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS

if TYPE_CHECKING:
    from specctl.runtime.draft import Proposer
    from specctl.runtime.models.heads.files import Changes
    from specctl.runtime.models.loading import Model
    from specctl.runtime.target import Target

# vLLM accepts mlp_speculator and has no runner for it (0.31); here it runs.
PROPOSERS: dict[str, tuple[str, str]] = {
    "ngram": ("specctl.runtime.proposers.ngram", "NgramProposer"),
    "suffix": ("specctl.runtime.proposers.suffix", "SuffixProposer"),
    "draft_model": ("specctl.runtime.proposers.draft_model", "DraftModelProposer"),
    "pard": ("specctl.runtime.proposers.pard", "PardProposer"),
    "eagle": ("specctl.runtime.proposers.eagle", "EagleProposer"),
    "eagle3": ("specctl.runtime.proposers.eagle", "Eagle3Proposer"),
    "mtp": ("specctl.runtime.proposers.mtp", "MtpProposer"),
    "dflash": ("specctl.runtime.proposers.dflash", "DFlashProposer"),
    "medusa": ("specctl.runtime.proposers.medusa", "MedusaProposer"),
    "mlp_speculator": ("specctl.runtime.proposers.mlp_speculator", "MlpSpeculatorProposer"),
}


@dataclass(frozen=True)
class Slots:
    """How many sequences a proposer must hold memory for at once, and of how many tokens each.

    ``changes``: what to try in place of the head's own files.
    """

    count: int
    max_len: int
    max_num_batched_tokens: int
    check_cache: bool = False
    changes: Changes | None = None

    def ledger(self) -> RowLedger | None:
        """What notes the rows of the draft's cache, where that is asked for."""
        return RowLedger("draft's") if self.check_cache else None


def make_proposer(spec: SpecDecodeConfig, target: Target, slots: Slots) -> Proposer:
    """The proposer of ``spec``; raises SpecctlError where the method does not run here or the draft does not fit."""
    name = spec.method.name
    if name not in PROPOSERS:
        raise SpecctlError(
            f"method {name!r} does not run on the bundled runtime",
            help=f"it runs {', '.join(PROPOSERS)}; validate-config checks the setting for its engine all the same",
        )
    if spec.tree is not None:
        _check_tree(spec, target)
    module, cls = PROPOSERS[name]
    proposer: Proposer = getattr(import_module(module), cls).from_spec(spec, target, slots)
    return proposer


def _check_tree(spec: SpecDecodeConfig, target: Target) -> None:
    """Raises SpecctlError where a tree would silently become a chain, or would be verified wrongly."""
    able = [name for name in PROPOSERS if METHODS[name].drafts_trees]
    if spec.method.name not in able:
        raise SpecctlError(
            f"method {spec.method.name!r} drafts chains on the bundled runtime; the setting asks for a tree",
            help=f"leave out the tree; {', '.join(able)} draft trees",
        )
    check_takes_trees(target.model, target.name)


def check_takes_trees(model: Model, name: str) -> None:
    """Raises SpecctlError for a model that cannot score the branches of a tree apart."""
    if not model.takes_trees:
        recurrent = list(getattr(model, "recurrent_layers", ()))
        why = (
            f"{len(recurrent)} of its layers (the first is layer {recurrent[0]}) keep a recurrent state, which follows "
            "one path"
            if recurrent
            else "its layers do not keep to a mask of branches"
        )
        raise SpecctlError(
            f"{name} cannot score a tree: {why}",
            help="leave out the tree; a chain runs",
        )


def drafted_tokens(spec: SpecDecodeConfig, most: int, own: int | None = None) -> int:
    """k of ``spec``, or where it names none, what the checkpoint says of itself (``own``).

    Raises SpecctlError where it is missing or out of 1 to ``most``.
    """
    k = own if spec.num_speculative_tokens is None else spec.num_speculative_tokens
    if k is None or not 1 <= k <= most:
        whose = f"{spec.method.name} with {spec.model}" if spec.model else spec.method.name
        raise SpecctlError(
            f"num_speculative_tokens is {k}; {whose} drafts 1 to {most} tokens a step on the bundled runtime",
            help="set num_speculative_tokens",
        )
    return k
