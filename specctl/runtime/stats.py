"""Acceptance counters, with vLLM's meanings (vllm/v1/spec_decode/metrics.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest


@dataclass
class StepTimes:
    """Seconds spent drafting and verifying (the target's forward and the judging) in steps without prefill.

    On a GPU the judging waits for the forward, so the sum is right and neither part runs into the other.
    """

    draft_s: float = 0.0
    verify_s: float = 0.0

    def add(self, draft_s: float, verify_s: float) -> None:
        """One more step."""
        self.draft_s += draft_s
        self.verify_s += verify_s


@dataclass
class SpecStats:
    """Counts of drafted and accepted tokens over verify steps.

    ``num_verify_steps`` counts every decode step of a request, ``num_drafts`` those that had at least one draft token.
    ``num_draft_tokens`` counts all nodes of a tree, root not among them, ``num_accepted_tokens`` those of the one path
    that stands. ``accepted_per_position[i]``: drafts of which a token at place i (0-based; in a tree, of its path) was
    accepted.
    ``acceptance_length_histogram[j]``: drafts that accepted exactly j tokens.
    ``steps``: drafted and accepted tokens of each draft in their order, None where they are not kept (sums have none).
    Ratios are None where nothing was counted: what was not measured is not 0.
    """

    num_verify_steps: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    accepted_per_position: list[int] = field(default_factory=list)
    acceptance_length_histogram: list[int] = field(default_factory=list)
    steps: list[tuple[int, int]] | None = field(default=None, compare=False)

    def record(self, drafted: int, accepted: int, depth: int | None = None) -> None:
        """Count one verify step of one request: ``drafted`` tokens proposed, ``accepted`` of them taken. ``depth``:
        what could have been accepted at most, all of them where None.
        """
        self.num_verify_steps += 1
        if drafted == 0:
            return
        self.num_drafts += 1
        self.num_draft_tokens += drafted
        self.num_accepted_tokens += accepted
        depth = drafted if depth is None else depth
        _grow(self.accepted_per_position, depth)
        _grow(self.acceptance_length_histogram, depth + 1)
        for position in range(accepted):
            self.accepted_per_position[position] += 1
        self.acceptance_length_histogram[accepted] += 1
        if self.steps is not None:
            self.steps.append((drafted, accepted))

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted tokens."""
        return self.num_accepted_tokens / self.num_draft_tokens if self.num_draft_tokens else None

    @property
    def mean_acceptance_length(self) -> float | None:
        """Tokens a verify step that had a draft emits, the bonus token included."""
        return 1 + self.num_accepted_tokens / self.num_drafts if self.num_drafts else None

    @property
    def mean_acceptance_length_all_steps(self) -> float | None:
        """The same over all verify steps, those without a draft counted as one token."""
        return 1 + self.num_accepted_tokens / self.num_verify_steps if self.num_verify_steps else None

    @property
    def acceptance_per_position(self) -> list[float]:
        """Accepted at position i / drafts: unconditional, so it never rises."""
        return [count / self.num_drafts for count in self.accepted_per_position]

    @property
    def conditional_acceptance_per_position(self) -> list[float | None]:
        """Accepted at i / accepted at i - 1 (drafts, for i = 0)."""
        reached = [self.num_drafts, *self.accepted_per_position]
        return [now / before if before else None for before, now in pairwise(reached)]

    def copy(self) -> SpecStats:
        """An independent copy, for differences over a window."""
        return self + SpecStats()

    def __add__(self, other: SpecStats) -> SpecStats:
        return self._combine(other, lambda a, b: a + b)

    def __sub__(self, other: SpecStats) -> SpecStats:
        return self._combine(other, lambda a, b: a - b)

    def _combine(self, other: SpecStats, op: Callable[[int, int], int]) -> SpecStats:
        def lists(a: list[int], b: list[int]) -> list[int]:
            return [op(x, y) for x, y in zip_longest(a, b, fillvalue=0)]

        return SpecStats(
            op(self.num_verify_steps, other.num_verify_steps),
            op(self.num_drafts, other.num_drafts),
            op(self.num_draft_tokens, other.num_draft_tokens),
            op(self.num_accepted_tokens, other.num_accepted_tokens),
            lists(self.accepted_per_position, other.accepted_per_position),
            lists(self.acceptance_length_histogram, other.acceptance_length_histogram),
        )


def _grow(counts: list[int], length: int) -> None:
    counts.extend([0] * (length - len(counts)))
