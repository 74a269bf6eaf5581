"""Trying a draft and its variants on one lesson."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from specctl.runtime.models.heads.files import Changes
from specctl.runtime.probing.follow import Marks, Picks, follow, joined
from specctl.runtime.probing.head_variants import head_variants
from specctl.runtime.probing.lesson import Lesson
from specctl.runtime.probing.variants import Variant, model_variants, open_draft
from specctl.runtime.proposers import Slots, make_proposer
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig

MODELS = ("draft_model", "pard")
ROWS = 512
# Every so many steps a change that has shown nothing is given up.
LOOK = 3


@dataclass(frozen=True)
class Trial:
    """A setting on a lesson, ``depth`` tokens a draft."""

    target: Target
    spec: SpecDecodeConfig
    lesson: Lesson
    depth: int

    def read(self, variants: Iterable[Variant], layers: Iterable[int]) -> None:
        """One forward of the target for all states that the draft, which reads ``layers``, and its variants take."""
        self.lesson.read({layer for each in variants for layer in each.layers or ()} | set(layers))

    def marks(self, variant: Variant | None = None, give_up: Callable[[Marks], bool] | None = None) -> Marks | None:
        """How the draft follows, with ``variant`` or as it is; None where ``give_up`` said so on the way.

        Raises SpecctlError and its kin where it cannot be loaded like that.
        """
        parts: list[Marks] = []
        for part in follow(self._proposer(variant), self.lesson, self.depth, variant.layers if variant else None):
            parts.append(part)
            if give_up is not None and len(parts) % LOOK == 0 and give_up(joined(parts)):
                return None
        return joined(parts) if parts else None

    def _proposer(self, variant: Variant | None) -> Picks:
        if variant is None or (variant.spec is None and variant.changes is None):
            return self._plain
        return self._made(variant.spec or self.spec, variant.changes)

    @cached_property
    def _plain(self) -> Picks:
        return self._made(self.spec, None)

    def _made(self, spec: SpecDecodeConfig, changes: Changes | None) -> Picks:
        """With a cache of its own for the lesson; it drafts chains of the trial's depth."""
        chained = replace(spec, num_speculative_tokens=self.depth, tree=None)
        slots = Slots(len(self.lesson.texts), self.lesson.longest + self.depth + 1, ROWS, changes=changes)
        made: Picks = make_proposer(chained, self.target, slots)  # type: ignore[assignment]
        return made


@contextmanager
def variants_of(target: Target, spec: SpecDecodeConfig, layers: tuple[int, ...] | None) -> Iterator[list[Variant]]:
    """Every variant of the draft that ``spec`` names; ``layers``: the target's states that it reads, None where it
    cannot be loaded.
    """
    with TemporaryDirectory(prefix="specctl-probe-") as place:
        if spec.method.name in MODELS:
            yield list(model_variants(target, spec, Path(place), layers is not None))
            return
        head = open_draft(target, spec, layers)
        yield [] if head is None else list(head_variants(head))
