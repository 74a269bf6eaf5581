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
    """The table of a folder; None where there is no tokenizer.json of a known shape."""
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


def first_difference(one: dict[int, str], other: dict[int, str]) -> tuple[int, str, str] | None:
    """The first id that both tables have with different text."""
    for number in sorted(one.keys() & other.keys()):
        if one[number] != other[number]:
            return number, one[number], other[number]
    return None
