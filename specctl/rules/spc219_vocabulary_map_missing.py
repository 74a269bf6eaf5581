"""The head drafts from a smaller vocabulary, but its checkpoint has no map to the target's tokens.

Without the tensors `d2t` or `t2d` the head's ids would be read as the first ids of the target, and nearly nothing is
accepted."""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo.fit import has_map

NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """Heads with a vocabulary of their own."""
    draft = reading.notes.get("draft")
    return draft is not None and not reading.off and draft.number("draft_vocab_size") is not None


def check(reading: Reading) -> Iterator[Finding]:
    """Sizes from the config, maps from the headers."""
    draft = reading.notes["draft"]
    target = reading.around.target_facts
    small, full = draft.number("draft_vocab_size"), draft.vocab_size or (target.vocab_size if target else None)
    if full is not None and small < full and has_map(draft) is False:
        yield Finding(
            "SPC219",
            f"the head drafts {small} of {full} tokens, but its checkpoint holds no map (d2t or t2d)",
            (),
            help="export the head again with its vocabulary map",
            stage=FAILS,
        )
