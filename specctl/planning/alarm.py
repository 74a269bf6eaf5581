"""Whether a draft is broken: it loads and runs, and the target takes its tokens about as often as chance would have it.

Engines stay silent about that: a head on the wrong layers, behind a swapped norm or of another target is only slow. The
rule looks at the first drafted token, which no other one can spoil, and speaks when it is sure: a draft looks broken
where the upper end of the one-sided 99.9 % Clopper-Pearson interval of that token's acceptance lies below 12 %. That
takes 55 drafts where none was accepted, and more where some were; of sound drafts that reach 12 %, one in a thousand at
most is accused. A draft that always says the commonest token of a text is right at one place in 20 or 30, one that
follows the token before it alone at one in 10; drafts that were trained for their target reach 40 to 90 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specctl.spec.methods import METHODS

BOUND = 0.12
RISK = 0.001

_EAGLE3, _TAPPED, _FUSED = ("eagle3",), ("eagle3", "dflash"), ("eagle", "eagle3", "mtp")
# What breaks drafts, the most frequent first: name, explanation, and the methods it belongs to (none: all).
_CAUSES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("wrong target", "the draft was made for another target, or for another version of it", ()),
    ("tap layers", "it reads other target layers than in training (ids counted from 0 or from 1)", _TAPPED),
    ("norm flags", "norm_before_residual or norm_output are not as in training", _EAGLE3),
    ("input order", "token and hidden state enter the fusion in the other order", _FUSED),
    ("chat template", "prompts are not in the chat format that the draft was trained on", ()),
    ("tokenizer", "its token ids, or its vocabulary map d2t, mean other tokens", ()),
    ("rope", "its rope_theta or rope scaling is not the one of training", ()),
    ("dtype", "its numbers overflow (float16), or its weights were damaged by a conversion", ()),
)


@dataclass(frozen=True)
class Alarm:
    """A broken draft: of ``drafts`` steps with a draft, ``accepted`` took its first token, so that the true share lies
    below ``upper`` (99.9 % sure). ``causes``: name and explanation, the likeliest first.
    """

    method: str
    drafts: int
    accepted: int
    upper: float
    causes: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """One sentence of what was measured, one with the likely causes."""
        return (
            f"{self.method} looks broken: of {self.drafts} drafts, {self.accepted} had their first token accepted "
            f"({100 * self.accepted / self.drafts:.1f} %, and below {100 * self.upper:.1f} % for certain): about what "
            f"chance gives. Likely causes, in this order: {', '.join(name for name, _ in self.causes)}; "
            "`specctl inspect TARGET --draft DRAFT --probe` tries them"
        )

    def as_dict(self) -> dict[str, Any]:
        """The form of reports."""
        return {
            "method": self.method,
            "num_drafts": self.drafts,
            "accepted_at_position_0": self.accepted,
            "acceptance_at_position_0": self.accepted / self.drafts,
            "upper_bound": self.upper,
            "stated_bound": BOUND,
            "confidence": 1 - RISK,
            "causes": [{"name": name, "what": what} for name, what in self.causes],
            "text": self.text,
        }


def broken_draft(method: str, drafts: int, accepted: int) -> Alarm | None:
    """The alarm about a draft of ``method`` whose first token was accepted in ``accepted`` of ``drafts`` steps.

    None where it is not certain, and for methods without weights: n-gram and suffix drafts depend on the text alone.
    """
    if not has_weights(method) or drafts <= 0 or not 0 <= accepted < BOUND * drafts:
        return None
    upper = upper_bound(drafts, accepted)
    return Alarm(method, drafts, accepted, upper, causes(method)) if upper < BOUND else None


def has_weights(method: str) -> bool:
    """Whether the drafts of a method come out of a checkpoint."""
    known = METHODS.get(method)
    return known is not None and (known.needs_model or known.optional_model)


def causes(method: str) -> tuple[tuple[str, str], ...]:
    """What can break a draft of ``method``, the likeliest first."""
    return tuple((name, what) for name, what, only in _CAUSES if not only or method in only)


def first_position(drafts: int | None, per_position: Sequence[float] | None) -> tuple[int, int] | None:
    """Drafts and how many of them had their first token accepted, from a report's figures; None where not measured."""
    if not drafts or per_position is None:
        return None
    return drafts, round(per_position[0] * drafts) if per_position else 0


def upper_bound(drafts: int, accepted: int, risk: float = RISK) -> float:
    """The upper end of the one-sided Clopper-Pearson interval at confidence 1 - ``risk``."""
    from scipy.special import betaincinv  # late: only runs that looked bad need it

    return 1.0 if accepted >= drafts else float(betaincinv(accepted + 1, drafts - accepted, 1 - risk))


def lower_bound(drafts: int, accepted: int, risk: float = RISK) -> float:
    """The lower end of the one-sided Clopper-Pearson interval at confidence 1 - ``risk``."""
    from scipy.special import betaincinv

    return 0.0 if accepted <= 0 else float(betaincinv(accepted, drafts - accepted + 1, risk))
