"""How well a draft follows the target along a given text, at the first drafted place and at later ones.

The proposer runs as it does in an engine, one step a token of the text; only its picks are taken from the text, so that
a wrong guess at one place does not spoil the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from specctl.runtime.draft import Proposer, SharesCache
from specctl.runtime.probing.lesson import Lesson
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.request import Request, SamplingParams
from specctl.runtime.sampling import Randomness
from specctl.runtime.sequence import Sequence as Running
from specctl.runtime.text import TextStream

# A token that a draft cannot propose at all counts as this likely.
FLOOR = math.log(1e-5)


class Picks(Proposer, Protocol):
    """A proposer whose tokens are picked by ``picker``."""

    picker: Any


@dataclass(frozen=True)
class Marks:
    """``right`` [places, depth]: whether the draft's best token is the target's, each place of a draft behind the true
    ones; ``logs``: the log-probability that the draft gives to it, at least `FLOOR`.
    """

    right: Tensor
    logs: Tensor

    @property
    def places(self) -> int:
        return self.right.shape[0]

    @property
    def accepted(self) -> Tensor:
        """How many places of a draft have their token accepted: [depth], each counts only behind accepted ones."""
        return self.right.long().cumprod(dim=1).sum(dim=0)

    @property
    def shares(self) -> list[float]:
        """The share of right tokens at each place of a draft."""
        return self.right.double().mean(dim=0).tolist()

    @property
    def length(self) -> float:
        """Mean acceptance length: 1 + accepted tokens a draft."""
        return 1 + float(self.accepted.sum()) / self.places


def joined(parts: Sequence[Marks]) -> Marks:
    """The marks of several steps."""
    return Marks(torch.cat([part.right for part in parts]), torch.cat([part.logs for part in parts]))


class Teacher:
    """Stands in for a proposer's `Picker`: notes what it would have picked, and hands back the text."""

    def __init__(self, picker: Picker, lesson: Lesson) -> None:
        self._picker = picker
        self._lesson = lesson
        self._noted: list[tuple[Tensor, Tensor]] = []

    def pick(self, sequences: Sequence[Running], logits: Tensor, ahead: int) -> list[tuple[int, Tensor | None]]:
        """As `Picker.pick`."""
        texts, slots = self._lesson.texts, [sequence.slot for sequence in sequences]
        behind = [len(sequence.tokens) - 1 + ahead for sequence in sequences]
        says = torch.stack(
            [self._lesson.says(slot)[row - texts[slot].start] for slot, row in zip(slots, behind, strict=True)]
        )
        full = self._picker.spread(logits.float())
        logs = full.log_softmax(dim=-1).gather(1, says.unsqueeze(1)).squeeze(1).clamp(min=FLOOR)
        self._noted.append((full.argmax(dim=-1) == says, logs))
        return [(texts[slot].tokens[row + 1], None) for slot, row in zip(slots, behind, strict=True)]

    def step(self) -> Marks:
        """What was noted since the last call, on the CPU."""
        right, logs = zip(*self._noted, strict=True)
        self._noted = []
        return Marks(torch.stack(right, dim=1).cpu(), torch.stack(logs, dim=1).cpu())


def follow(proposer: Picks, lesson: Lesson, depth: int, layers: Sequence[int] | None = None) -> Iterator[Marks]:
    """Lead ``proposer``, which serves nobody else, through the texts; the marks of one step after the other.

    ``depth``: tokens of each draft. ``layers``: give it these states of the target instead of those it asks for.
    """
    fed = tuple(proposer.hidden_layers if layers is None else layers)
    lesson.read(fed)
    picker = proposer.picker
    proposer.picker = teacher = Teacher(picker, lesson)
    if isinstance(proposer, SharesCache):
        proposer.share(lesson.cache)
    running = [_begin(proposer, lesson, number, fed) for number in range(len(lesson.texts))]
    try:
        while running := [(s, states) for s, states in running if len(s.tokens) + depth <= _length(lesson, s)]:
            _ask(proposer, running, depth)
            yield teacher.step()
            for sequence, states in running:
                _go_on(proposer, lesson, sequence, states)
    finally:
        proposer.picker = picker


Pupil = tuple[Running, Tensor | None]


def _length(lesson: Lesson, sequence: Running) -> int:
    return len(lesson.texts[sequence.slot].tokens)


@torch.inference_mode()
def _begin(proposer: Proposer, lesson: Lesson, number: int, layers: Sequence[int]) -> Pupil:
    """The prompt is computed, and the first token of the answer stands."""
    text, states = lesson.texts[number], lesson.states(number, layers)
    prompt = text.tokens[: text.start]
    request = Request(str(number), prompt, SamplingParams(temperature=0))
    sequence = Running(request, list(prompt), Randomness(0), TextStream(lambda _: "", (), False), slot=number)
    proposer.start(sequence)
    sequence.tokens.append(text.tokens[text.start])
    sequence.num_computed = text.start
    proposer.observe(sequence, None if states is None else states[: text.start])
    return sequence, states


@torch.inference_mode()
def _ask(proposer: Proposer, running: Sequence[Pupil], depth: int) -> None:
    proposer.propose([sequence for sequence, _ in running], [depth] * len(running))


@torch.inference_mode()
def _go_on(proposer: Proposer, lesson: Lesson, sequence: Running, states: Tensor | None) -> None:
    """The target has computed the newest token, and one more stands: as if nothing had been accepted."""
    row = sequence.num_computed
    sequence.tokens.append(lesson.texts[sequence.slot].tokens[row + 1])
    sequence.num_computed += 1
    proposer.observe(sequence, None if states is None else states[row : row + 1])
