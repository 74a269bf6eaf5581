"""The token table of a checkpoint, out of its tokenizer.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class TokenTable:
    """Text by id: ordinary tokens, and those added beside them (special tokens among them)."""

    ordinary: dict[int, str]
    added: dict[int, str]


@lru_cache(maxsize=16)
def token_table(folder: Path) -> TokenTable | None:
    """The table of a folder or GGUF file; None where there is no tokenizer.json of a known shape."""
    if folder.is_file():
        return _of_gguf(folder)
    try:
        data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        vocabulary = data["model"]["vocab"]
        added = {int(entry["id"]): str(entry["content"]) for entry in data.get("added_tokens") or ()}
        if isinstance(vocabulary, dict):
            ordinary = {int(number): str(text) for text, number in vocabulary.items()}
        else:  # unigram models list pairs of text and score
            ordinary = {number: str(pair[0]) for number, pair in enumerate(vocabulary)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return TokenTable({number: text for number, text in ordinary.items() if number not in added}, added)


def _of_gguf(file: Path) -> TokenTable | None:
    from specctl.modelinfo.gguf import BadHeader, read_header

    try:
        metadata = read_header(file).metadata
    except (BadHeader, OSError):
        return None
    tokens, kinds = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, list):
        return None
    special = {at for at, kind in enumerate(kinds or ()) if kind in (3, 4)}  # control and user-defined
    every = dict(enumerate(map(str, tokens)))
    return TokenTable(
        {at: text for at, text in every.items() if at not in special}, {at: every[at] for at in special if at in every}
    )


def first_difference(one: dict[int, str], other: dict[int, str]) -> tuple[int, str, str] | None:
    """The first id that both tables have with different text."""
    for number in sorted(one.keys() & other.keys()):
        if one[number] != other[number]:
            return number, one[number], other[number]
    return None
