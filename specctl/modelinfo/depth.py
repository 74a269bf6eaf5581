"""How many tokens a step a draft was trained for, as its checkpoint states it."""

from __future__ import annotations

from specctl.modelinfo.describe import is_assistant
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.families import mtp_family, mtp_layers


def trained_depth(draft: ModelFacts, method: str) -> tuple[int, str] | None:
    """The count, and in words what it is a count of; None where the checkpoint says nothing."""
    if method == "medusa":
        heads = draft.number("num_heads", "medusa_num_heads")
        return (heads, f"the checkpoint has {heads} heads") if heads else None
    if method == "mtp" and is_assistant(draft):
        return None  # its layers are made to run again: published settings draft 2 to 8 tokens
    if method == "mtp":
        family = mtp_family(draft)
        layers = mtp_layers(draft, family) if family else None
        told = f"the checkpoint has {layers} prediction layer{'s' * (layers != 1)}, which would run over and over"
        return (layers, told) if layers else None
    stated = draft.number("n_predict") if method == "mlp_speculator" else draft.proposed_tokens
    return (stated, f"the checkpoint was trained for {stated}") if stated else None


def beyond_depth(draft: ModelFacts, method: str, k: int | None) -> str | None:
    """What to say of ``k`` drafted tokens where the draft was trained for fewer; None where nothing is to be said."""
    found = trained_depth(draft, method)
    if found is None or k is None or k <= found[0]:
        return None
    return f"{k} tokens a step are drafted, but {found[1]}: expect few accepted tokens beyond {found[0]}"
