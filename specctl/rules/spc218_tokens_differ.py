"""Draft and target give the same token ids to different texts.

Equal vocabulary sizes are not equal tokenizers. A draft of another tokenizer proposes nonsense, and nothing but the
acceptance shows it. Tokens that were added beside the vocabulary (special tokens) may differ as long as the draft
never has to propose them."""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo.tokens import first_difference, token_table

NEEDS = ("target", "draft")


def applies(reading: Reading) -> bool:
    """Drafts that are language models of their own."""
    own = reading.spec is not None and reading.spec.method.name in ("draft_model", "pard")
    return not reading.off and own and not reading.effective.get("use_heterogeneous_vocab")


def check(reading: Reading) -> Iterator[Finding]:
    """Ordinary tokens, then added ones."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    one, other = token_table(target.path), token_table(draft.path)
    if one is None or other is None:
        return
    differs = first_difference(one.ordinary, other.ordinary)
    if differs:
        number, here, there = differs
        yield Finding(
            "SPC218",
            f"token {number} is {here!r} for the target and {there!r} for the draft: they have different tokenizers",
            (),
            help="use a draft that was made with the target's tokenizer",
            stage=FAILS,
        )
        return
    added = first_difference(one.added, other.added)
    if added:
        number, here, there = added
        yield Finding(
            "SPC218",
            f"the added token {number} is {here!r} for the target and {there!r} for the draft",
            (),
            help="check that end-of-text and chat tokens agree",
            severity="warning",
        )
