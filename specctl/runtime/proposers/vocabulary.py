"""Whether a draft speaks the target's language: the same id must mean the same piece of text."""

from __future__ import annotations

from pathlib import Path

from specctl.errors import SpecctlError
from specctl.runtime.target import Target, load_tokenizer

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")


def check_same_vocabulary(target: Target, folder: Path, name: str, vocab_size: int) -> None:
    """Raises SpecctlError with an id that decodes differently, or with the two sizes where the draft has no tokenizer.

    ``vocab_size`` is the draft's embedding size. Rows beyond the tokenizer's ids are padding and may differ.
    """
    if not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        if vocab_size != target.vocab_size:
            raise SpecctlError(
                f"draft {name!r} has {vocab_size} tokens, target {target.name!r} has {target.vocab_size}", help=_CURE
            )
        return
    wanted = {index: piece for piece, index in target.tokenizer.get_vocab().items()}
    found = {index: piece for piece, index in load_tokenizer(folder).get_vocab().items()}
    for index in sorted(wanted.keys() | found.keys()):
        if wanted.get(index) != found.get(index):
            raise SpecctlError(
                f"draft {name!r} has another vocabulary than target {target.name!r}: id {index} is "
                f"{found.get(index)!r} there and {wanted.get(index)!r} here ({len(found)} and {len(wanted)} pieces)",
                help=_CURE,
            )


_CURE = "use a draft of the same model family; n-gram drafting needs none"
