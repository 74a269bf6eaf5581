"""Whether two checkpoints mean the same text by the same token ids: judged by the ids, never by sizes alone.

Tokens that were added beside the vocabulary (special tokens among them) may differ: a draft that never proposes them is
sound all the same. An ordinary id with another text is another tokenizer, however equal the sizes are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.tokens import TokenTable, first_difference, token_table

SAME, ADDED, OTHER = "same", "added", "other"
_SHOWN = 3


@dataclass(frozen=True)
class Likeness:
    """``kind``: same (all ids agree), added (the ordinary ones do), or other. ``proof``: the first id that differs and
    its text on both sides, None on the side that does not have it. ``differing``: the ids that are not shared.
    """

    kind: str
    evidence: str
    proof: tuple[int, str | None, str | None] | None = None
    differing: frozenset[int] = frozenset()


def likeness_of(target: ModelFacts, draft: ModelFacts) -> Likeness | None:
    """What the two tokenizer.json (or GGUF files) show; None where one of them cannot be read."""
    one, other = token_table(target.path), token_table(draft.path)
    return None if one is None or other is None else compare_tables(one, other, used_ids(target))


def used_ids(target: ModelFacts) -> frozenset[int]:
    """The ids that the target's config begins and ends texts with."""
    found = [target.text.get(key) for key in ("bos_token_id", "eos_token_id")]
    flat = [each for value in found for each in (value if isinstance(value, list) else [value])]
    return frozenset(each for each in flat if isinstance(each, int))


def compare_tables(one: TokenTable, other: TokenTable, used: Collection[int] = ()) -> Likeness:
    """``one`` is the target's table, ``used`` are ids of its that a draft must share: where texts begin and end."""
    here, there = {**one.ordinary, **one.added}, {**other.ordinary, **other.added}
    differing = sorted(number for number in here.keys() | there.keys() if here.get(number) != there.get(number))
    if not differing:
        return Likeness(SAME, f"all {len(here)} ids have the same text")
    first = first_difference(one.ordinary, other.ordinary) or _used_otherwise(here, there, used)
    if first:
        number, ours, theirs = first
        shared = len(here.keys() & there.keys() - set(differing))
        told = f"id {number} is {ours!r} for the target and {theirs!r} for the draft"
        return Likeness(OTHER, f"{told}; {shared} of {len(here)} ids agree", first, frozenset(differing))
    number = differing[0]
    proof = number, here.get(number), there.get(number)
    return Likeness(ADDED, _added(differing, here, there), proof, frozenset(differing))


def _used_otherwise(here: dict[int, str], there: dict[int, str], used: Collection[int]) -> tuple[int, str, str] | None:
    """The first id in use whose text the draft has otherwise."""
    return next(((n, here[n], there[n]) for n in sorted(used) if n in here and there.get(n, here[n]) != here[n]), None)


def _added(differing: list[int], here: dict[int, str], there: dict[int, str]) -> str:
    """Which ids are not shared, and that they do not matter."""

    def told(number: int) -> str:
        if number not in there:
            return f"the added token {number} ({here[number]!r}) only the target has"
        if number not in here:
            return f"the added token {number} ({there[number]!r}) only the draft has"
        return f"the added token {number} is {here[number]!r} for the target and {there[number]!r} for the draft"

    more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
    listed = ", ".join(map(told, differing[:_SHOWN]))
    return f"{listed}{more}; all other ids agree"


def sizes(target: ModelFacts, draft_rows: int | None) -> tuple[int, int] | None:
    """Rows of the target's embedding and the draft's, where both are known and differ."""
    ours = target.vocab_size
    return None if ours is None or draft_rows is None or ours == draft_rows else (ours, draft_rows)
