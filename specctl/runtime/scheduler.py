"""Who runs, in which slot, and how much of which prompt a step takes. Pure bookkeeping, no tensors."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specctl.runtime.sequence import Sequence


@dataclass(frozen=True)
class Chunk:
    """``count`` prompt tokens of a sequence, from its ``num_computed`` on."""

    sequence: Sequence
    count: int


class Scheduler:
    """First come, first served. Decoding sequences always run; prefill takes what the budget leaves, at least one
    token.
    """

    def __init__(self, max_num_seqs: int, max_num_batched_tokens: int) -> None:
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self._by_id: dict[str, Sequence] = {}
        self._max_num_seqs = max_num_seqs
        self._budget = max_num_batched_tokens

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self._by_id[sequence.request.id] = sequence

    def find(self, request_id: str) -> Sequence | None:
        """The waiting or running sequence of a request, or None."""
        return self._by_id.get(request_id)

    def admit(self) -> list[Sequence]:
        """Give free slots, the lowest first, to those who wait longest: dense slots keep attention in one block."""
        taken = {sequence.slot for sequence in self.running}
        free = [slot for slot in range(self._max_num_seqs) if slot not in taken]
        admitted = []
        for slot in free[: len(self.waiting)]:
            sequence = self.waiting.popleft()
            sequence.slot = slot
            admitted.append(sequence)
        self.running += admitted
        self.running.sort(key=lambda sequence: sequence.slot)
        return admitted

    def plan(self) -> tuple[list[Sequence], list[Chunk]]:
        """The decoding sequences in slot order, and the prefill chunks of this step."""
        decodes = [sequence for sequence in self.running if sequence.decoding]
        left = max(1, self._budget - len(decodes))
        chunks = []
        for sequence in self.running:
            if sequence.decoding or left == 0:
                continue
            count = min(left, sequence.num_prompt - sequence.num_computed)
            chunks.append(Chunk(sequence, count))
            left -= count
        return decodes, chunks

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence, wherever it is."""
        del self._by_id[sequence.request.id]
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
