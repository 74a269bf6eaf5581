"""Rows of a recording as batches: prompts end and answers begin at the same column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor

from train.recording import STATES, Answer, load_answers


@dataclass(frozen=True)
class Batch:
    """`ids` and `real` [rows, T]; `states` [rows, T, layers * width], None without a recording of them; answers begin
    at column `begin`.

    `labels` [rows, A]: the target's own next token where the answer has one, for A = T - begin - 1 columns from `begin`
    on; `known`: whether it has.
    """

    ids: Tensor
    real: Tensor
    states: Tensor | None
    begin: int

    @property
    def anchors(self) -> int:
        """Columns at which a guess may start: the newest token stands there, and at least one token follows."""
        return self.ids.shape[1] - self.begin - 1

    @property
    def labels(self) -> Tensor:
        return self.ids[:, self.begin + 1 :]

    @property
    def known(self) -> Tensor:
        return self.real[:, self.begin + 1 :]

    @property
    def tokens(self) -> int:
        """Tokens that are no padding."""
        return int(self.real.sum())


class Recording:
    """A folder of answers, and of states where they were kept."""

    def __init__(self, folder: Path, held_out: int = 0) -> None:
        self._answers = load_answers(folder)
        lengths = [len(each.ids) for each in self._answers]
        self._starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist()
        path = folder / STATES
        self._states = np.load(path, mmap_mode="r") if path.is_file() else None
        usable = [i for i, each in enumerate(self._answers) if len(each.ids) - each.begin > 1]
        self.held_out, self.train = usable[:held_out], usable[held_out:]

    @property
    def answers(self) -> list[Answer]:
        """All of them."""
        return self._answers

    def size(self, places: Sequence[int]) -> int:
        """Tokens of these answers with their prompts."""
        return sum(len(self._answers[i].ids) for i in places)

    def batch(self, places: Sequence[int], with_states: bool = True) -> Batch:
        """These answers as one batch."""
        chosen = [self._answers[i] for i in places]
        begin = max(each.begin for each in chosen)
        length = begin + max(len(each.ids) - each.begin for each in chosen)
        ids = torch.zeros(len(chosen), length, dtype=torch.int64)
        real = torch.zeros(len(chosen), length, dtype=torch.bool)
        kept = self._states if with_states else None
        states = None if kept is None else torch.zeros(len(chosen), length, kept.shape[1])
        for row, (place, each) in enumerate(zip(places, chosen, strict=True)):
            columns = slice(begin - each.begin, begin - each.begin + len(each.ids))
            ids[row, columns] = torch.tensor(each.ids)
            real[row, columns] = True
            if states is not None and kept is not None:
                at = self._starts[place]
                states[row, columns] = torch.from_numpy(kept[at : at + len(each.ids)].astype(np.float32))
        return Batch(ids, real, states, begin)

    def epoch(self, rng: Random, rows: int) -> Iterator[list[int]]:
        """All training answers once, answers of like length together."""
        order = list(self.train)
        rng.shuffle(order)
        groups = []
        for at in range(0, len(order), 24 * rows):
            near = sorted(order[at : at + 24 * rows], key=self._shape)
            groups += [near[i : i + rows] for i in range(0, len(near), rows)]
        rng.shuffle(groups)
        yield from groups

    def _shape(self, place: int) -> tuple[int, int]:
        each = self._answers[place]
        return each.begin // 24, len(each.ids)
