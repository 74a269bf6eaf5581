"""Trees for tests: random shapes, and sequences that stand somewhere without an engine."""

from __future__ import annotations

import random
from typing import Any

from specctl.runtime.draft import ROOT
from specctl.runtime.sampling import Randomness
from specctl.runtime.sequence import Sequence
from specctl.runtime.text import TextStream
from tests.runtime.kit import ask


def random_parents(dice: random.Random, size: int) -> tuple[int, ...]:
    """A tree of ``size`` nodes, deep rather than wide."""
    return tuple(max(ROOT, node - 1 - int(dice.expovariate(0.6))) for node in range(size))


def standing(slot: int, tokens: list[int], **sampling: Any) -> Sequence:
    """A sequence all of whose tokens but the newest are computed."""
    text = TextStream(lambda *_, **__: "", ())
    request, computed = ask(f"{slot}", tokens, **sampling), len(tokens) - 1
    return Sequence(request, list(tokens), Randomness(slot), text, slot=slot, num_computed=computed)
