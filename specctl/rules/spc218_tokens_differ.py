"""Draft and target give the same token ids to different texts.

Equal vocabulary sizes are not equal tokenizers. A draft of another tokenizer proposes nonsense, and nothing but the
acceptance shows it. Tokens that were added beside the vocabulary (special tokens) may differ as long as the draft
never has to propose them."""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo.vocabulary import OTHER, SAME, likeness_of

NEEDS = ("target", "draft")


def applies(reading: Reading) -> bool:
    """Drafts that are language models of their own."""
    own = reading.spec is not None and reading.spec.method.name in ("draft_model", "pard")
    return not reading.off and own and not reading.effective.get("use_heterogeneous_vocab")


def check(reading: Reading) -> Iterator[Finding]:
    """Ordinary tokens, then added ones."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    found = likeness_of(target, draft)
    if found is None or found.kind == SAME:
        return
    if found.kind == OTHER:
        assert found.proof is not None, "another tokenizer shows by an id"
        number, here, there = found.proof
        yield Finding(
            "SPC218",
            f"token {number} is {here!r} for the target and {there!r} for the draft: they have different tokenizers",
            (),
            help="use a draft that was made with the target's tokenizer",
            stage=FAILS,
        )
    else:
        yield Finding(
            "SPC218",
            found.evidence,
            (),
            help="check that end-of-text and chat tokens agree",
            severity="warning",
        )
