"""How much of a draft the target would accept, worked out from the target's greedy outputs.

Greedy decoding is lossless, so the accepted tokens of a step are the ones in which a proposal agrees with the output.
Tokens proposed beyond the end mark count as not accepted, which makes these figures a little low.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from train.model import TinyQwen3

Propose = Callable[[list[int]], list[int]]


@dataclass
class Tally:
    """Counters over verify steps."""

    steps: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0

    def add(self, other: Tally) -> None:
        """Pool."""
        self.steps += other.steps
        self.drafts += other.drafts
        self.drafted += other.drafted
        self.accepted += other.accepted

    @property
    def length(self) -> float:
        """Tokens a verify step that had a draft, bonus counted."""
        return 1 + self.accepted / max(1, self.drafts)

    @property
    def length_all(self) -> float:
        """Tokens a verify step."""
        return 1 + self.accepted / max(1, self.steps)


def simulate(prompt: list[int], output: list[int], propose: Propose) -> Tally:
    """Walk through one output; its first token comes from the prefill."""
    tally, at = Tally(), 1
    while at < len(output):
        draft = propose(prompt + output[:at])
        right = 0
        while right < len(draft) and at + right < len(output) and draft[right] == output[at + right]:
            right += 1
        tally.add(Tally(1, int(bool(draft)), len(draft), right))
        at += right + 1
    return tally


def by_ngram(k: int = 4, shortest: int = 2, longest: int = 4) -> Propose:
    """What followed the earliest place of the longest matching suffix."""

    def propose(context: list[int]) -> list[int]:
        for size in range(longest, shortest - 1, -1):
            suffix = context[-size:]
            for start in range(len(context) - size):
                if context[start : start + size] == suffix:
                    return context[start + size : start + size + k]
        return []

    return propose


def by_model(draft: TinyQwen3, k: int = 4) -> Propose:
    """The draft model's greedy continuation."""

    @torch.no_grad()
    def propose(context: list[int]) -> list[int]:
        ids = list(context)
        for _ in range(k):
            ids.append(int(draft.logits(draft.hidden(torch.tensor([ids]))[:, -1]).argmax()))
        return ids[len(context) :]

    return propose
