"""The check at load: does one small change make the draft follow the target clearly better?

A wrong norm flag, exchanged halves or another rotation leave a draft that runs and is merely slow, often not slow
enough for the alarm. So a few short conversations are led through the draft as it is and with each change that can be
tried, and one that clearly helps (`compare`) is named with what to write where. It takes one forward of the target over
a few hundred tokens; it has caches of its own, and what it finds changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from specctl.errors import SpecctlError
from specctl.runtime.engine import Engine
from specctl.runtime.footprint import footprint
from specctl.runtime.probing.compare import Gain, gain, hopeless, trivial_share
from specctl.runtime.probing.follow import Marks
from specctl.runtime.probing.lesson import Lesson, bundled_texts
from specctl.runtime.probing.trial import MODELS, Trial, variants_of
from specctl.runtime.probing.variants import Variant
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig

log = logging.getLogger("specctl.runtime")

DEPTH = 2
# A draft is loaded once more to be tried; larger ones are left alone.
MAX_BYTES = 4 * 2**30
OPTION = "--no-draft-check"


@dataclass(frozen=True)
class Finding:
    """A change that helps: ``gain`` at one place of the draft, acceptance lengths ``before`` and ``after``."""

    variant: Variant
    gain: Gain
    before: float
    after: float

    def text(self, method: str, draft: str) -> str:
        """One sentence with cause and figures, one with the cure."""
        place = "first tokens" if self.gain.place == 0 else f"tokens at place {self.gain.place + 1}"
        measured = (
            f"of {self.gain.places} {place} on a calibration text {100 * self.gain.before:.0f} % are the target's own, "
            f"and {100 * self.gain.after:.0f} % with {self.variant.change} (acceptance length {self.before:.2f} and "
            f"{self.after:.2f})"
        )
        return (
            f"WARNING: the {method} draft {draft} looks misread: {measured}. Cause: {self.variant.cause}; "
            f"{self.variant.cure}. `specctl inspect TARGET --draft DRAFT --probe` measures at length"
        )


def draft_check(engine: Engine, spec: SpecDecodeConfig) -> tuple[str, ...]:
    """What to tell the user about the draft of ``engine``; nothing where no change is clearly better.

    A fault in the check itself is told, too, and never keeps an engine from starting.
    """
    size = footprint(engine)["draft_weight_bytes"] or 0
    if size > MAX_BYTES:
        return (f"draft check left out: the draft has {size / 2**30:.1f} GiB, more than {MAX_BYTES // 2**30} GiB",)
    try:
        layers = engine.proposer.hidden_layers if engine.proposer else ()
        found = examine(engine.target, spec, engine.num_speculative_tokens, layers)
    except (SpecctlError, RuntimeError, ValueError, TypeError, KeyError, IndexError) as error:
        log.debug("the draft check failed", exc_info=error)
        return (f"draft check left out: {type(error).__name__}: {error}",)
    return () if found is None else (found.text(spec.method.name, spec.model or "in the target's own checkpoint"),)


def examine(target: Target, spec: SpecDecodeConfig, k: int, layers: tuple[int, ...]) -> Finding | None:
    """The change that is clearly better than the draft as it is, the best of them. ``k``: tokens that it drafts a step;
    ``layers``: the target's states that it reads.
    """
    with variants_of(target, spec, layers) as found:
        variants = [variant for variant in found if variant.spec is None or spec.method.name in MODELS]
        texts = bundled_texts(target)
        if not variants or not texts:
            return None
        trial = Trial(target, spec, Lesson(target, texts), min(k, DEPTH))
        trial.read(variants, layers)
        base = trial.marks()
        if base is None:
            return None
        return max(_findings(trial, base, variants), key=lambda each: each.after, default=None)


def _findings(trial: Trial, base: Marks, variants: list[Variant]) -> Iterator[Finding]:
    trivial, comparisons = trivial_share(trial.lesson), len(variants) * trial.depth

    for variant in variants:
        try:
            marks = trial.marks(variant, lambda marks: hopeless(base, marks))
        except SpecctlError:  # it cannot be loaded like that: so that is not what is wrong
            continue
        better = None if marks is None else gain(base, marks, trivial, comparisons)
        if marks is not None and better is not None:
            yield Finding(variant, better, base.length, marks.length)
