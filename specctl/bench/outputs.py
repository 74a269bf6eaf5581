"""Whether a draft changed the output: token by token, each difference sorted by its cause.

- near-tie: the target's two best tokens lay so close that other batch widths can swap them;
- sampling: the run was not greedy, so outputs may differ;
- history: an earlier answer of the conversation differed, so this turn did not ask the same;
- truncation: one output ends earlier than was asked for, at the server's context limit;
- real: anything else. It fails the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from specctl.bench.records import Record

IDENTICAL, NEAR_TIE, DIFFERENT, NOT_CHECKED, TRUNCATED = (
    "identical",
    "near-tie",
    "different",
    "not-checked",
    "truncated",
)
SAMPLING, TRUNCATION, REAL, HISTORY = "sampling", "truncation", "real", "history"

Pair = tuple[Record, Record]
Seen = dict[tuple[int, int, tuple[int, ...]], float | None]
"""Margins that were already asked for, by prompt, turn and the answer so far."""
Margin = Callable[[Record, int], float | None]
"""Distance of the target's two largest logits at a token (its index) of the baseline's output; None: not known."""


@dataclass(frozen=True)
class Divergence:
    """The first token at which a candidate's output leaves the baseline's.

    `request` is the prompt's index in the workload, `turn` its question (from 0), `token` the index in the output (of
    characters where a server sends text alone). `margin` is None where nothing was chosen there, or the server does not
    say.
    """

    request: int
    token: int
    margin: float | None
    kind: str = REAL
    unit: str = "token"
    turn: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report's form."""
        return {
            "request": self.request,
            "turn": self.turn,
            "token": self.token,
            "margin": self.margin,
            "kind": self.kind,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class TieRule:
    """How to tell numeric noise from a wrong token: differences at a margin of at most `limit` logits are near-ties.

    `greedy` False: the outputs were sampled. `may_truncate`: an output that ends early may be the server's context
    limit; in process it never is.
    """

    margin: Margin
    limit: float
    greedy: bool = True
    may_truncate: bool = False


@dataclass(frozen=True)
class Outputs:
    """What became of the outputs of one comparison. `counts` by cause, over the requests that differ."""

    status: str
    first: Divergence | None = None
    counts: dict[str, int] = field(default_factory=dict)
    checked: int = 0


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first index at which two outputs differ, the end of the shorter one included; None where they are equal."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def compare_outputs(matched: Sequence[Pair], rule: TieRule) -> Outputs:
    """The status, and the divergence to look at: the first real one, else the first of another cause.

    Without pairs nothing was checked; sampled outputs are counted, but never judged.
    """
    seen: Seen = {}
    found = [divergence for pair in matched if (divergence := _divergence(pair, rule, seen)) is not None]
    counts = dict(Counter(each.kind for each in found))
    own = [each for each in found if each.kind != HISTORY]
    first = next((each for each in own if each.kind == REAL), own[0] if own else None)
    checked = len(matched) - counts.get(HISTORY, 0)
    if not checked or not rule.greedy:
        return Outputs(NOT_CHECKED, first, counts, checked)
    by_kind = ((REAL, DIFFERENT), (NEAR_TIE, NEAR_TIE), (TRUNCATION, TRUNCATED))
    status = next((status for kind, status in by_kind if kind in counts), IDENTICAL)
    return Outputs(status, first, counts, checked)


def _divergence(pair: Pair, rule: TieRule, seen: Seen) -> Divergence | None:
    base, other = pair
    if base.job.prompt.messages != other.job.prompt.messages:
        return Divergence(base.job.index, 0, None, HISTORY, turn=base.job.turn)
    by_ids = bool(base.token_ids) and bool(other.token_ids)
    left, right = (base.token_ids, other.token_ids) if by_ids else ([*map(ord, base.text)], [*map(ord, other.text)])
    place = first_difference(left, right)
    if place is None:
        return None
    unit = "token" if by_ids else "character"
    if not rule.greedy:
        return Divergence(base.job.index, place, None, SAMPLING, unit, base.job.turn)
    if place == min(len(left), len(right)):
        shorter = base if len(left) < len(right) else other
        # A server that leaves its end token out has chosen it here; then the margin tells as everywhere.
        if shorter.finish_reason != "stop" or not rule.may_truncate:
            kind = TRUNCATION if rule.may_truncate else REAL
            return Divergence(base.job.index, place, None, kind, unit, base.job.turn)
    # Repeats diverge at the same place; one forward answers for all of them.
    key = (base.job.index, base.job.turn, tuple(left[:place]))
    if key not in seen:
        seen[key] = rule.margin(base, place) if by_ids else None
    margin = seen[key]
    near = margin is not None and margin <= rule.limit
    return Divergence(base.job.index, place, margin, NEAR_TIE if near else REAL, unit, base.job.turn)
