"""Who runs, in which slot, and how much of which prompt a step takes. Pure bookkeeping, no tensors."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from specctl.errors import SpecctlError
from specctl.runtime.options import EngineOptions
from specctl.runtime.sequence import Sequence

# Memory is counted in blocks of so many cache entries, and shared in nothing smaller.
BLOCK = 16


def blocks(tokens: int) -> int:
    """Blocks that hold ``tokens`` cache entries."""
    return -(-tokens // BLOCK)


@dataclass(frozen=True)
class Chunk:
    """``count`` tokens of a sequence that its cache lacks, from its ``num_computed`` on."""

    sequence: Sequence
    count: int


@dataclass(frozen=True)
class Limits:
    """``kv_tokens``: cache entries that all sequences together may have; ``max_entries``: that one of them can have at
    most; ``rows``: cache entries that a decoding sequence may add in a step, drafts and all.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_tokens: int
    max_entries: int
    rows: int


def make_limits(options: EngineOptions, max_model_len: int, entries: int, rows: int) -> Limits:
    """The limits of an engine whose sequences may have ``entries`` cache entries each and add ``rows`` a step.

    Raises SpecctlError where one conversation would not fit.
    """
    kv_tokens = options.kv_cache_tokens or options.max_num_seqs * blocks(entries) * BLOCK
    if kv_tokens < entries:
        raise SpecctlError(
            f"the KV cache holds {kv_tokens} tokens; one conversation of max_model_len {max_model_len} needs {entries}",
            help="give the cache more memory, or lower max_model_len",
        )
    return Limits(options.max_num_seqs, options.max_num_batched_tokens, kv_tokens, entries, rows)


class Scheduler:
    """First come, first served. Decoding sequences always run; prefill takes what the budget leaves, at least one
    token. Where memory runs out, whoever came last makes room, waits first in line, and goes on where it was.
    """

    def __init__(self, limits: Limits) -> None:
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.num_preemptions = 0
        self._by_id: dict[str, Sequence] = {}
        self._limits = limits
        self._arrivals = 0
        self.num_blocks = limits.kv_tokens // BLOCK

    def add(self, sequence: Sequence) -> None:
        sequence.arrival = self._arrivals
        self._arrivals += 1
        self.waiting.append(sequence)
        self._by_id[sequence.request.id] = sequence

    def find(self, request_id: str) -> Sequence | None:
        """The waiting or running sequence of a request, or None."""
        return self._by_id.get(request_id)

    @property
    def reserved(self) -> int:
        """Blocks that the running sequences may fill in the next step."""
        return sum(self._needed(sequence) for sequence in self.running)

    def _needed(self, sequence: Sequence) -> int:
        return blocks(min(len(sequence.tokens) + self._limits.rows, self._limits.max_entries))

    def free_slots(self) -> list[int]:
        """Slots that no running sequence has, the lowest first."""
        taken = {sequence.slot for sequence in self.running}
        return [slot for slot in range(self._limits.max_num_seqs) if slot not in taken]

    def next(self) -> Sequence | None:
        """The sequence that may run next: the first in line, where a slot and its memory are free.

        A block a running sequence stays free, so that the newcomer is not sent away again at once.
        """
        if not self.waiting or len(self.running) >= self._limits.max_num_seqs:
            return None
        wanted = self.reserved + self._needed(self.waiting[0])
        if self.running and wanted + len(self.running) > self.num_blocks:
            return None
        return self.waiting[0]

    def run(self, sequence: Sequence, slot: int) -> None:
        """Let the first in line run in ``slot``."""
        assert sequence is self.waiting[0], "nobody overtakes"
        self.waiting.popleft()
        sequence.slot = slot
        self.running.append(sequence)
        self.running.sort(key=lambda each: each.slot)

    def overfull(self) -> Sequence | None:
        """Whom to preempt, the newest, as long as the running sequences do not fit; one alone always does."""
        if len(self.running) < 2 or self.reserved <= self.num_blocks:
            return None
        return max(self.running, key=lambda sequence: sequence.arrival)

    def preempt(self, sequence: Sequence) -> None:
        """Send a running sequence back to the head of the line. Its tokens stay, its cache is computed again."""
        self.running.remove(sequence)
        sequence.slot, sequence.num_computed = -1, 0
        self.waiting.appendleft(sequence)
        self.num_preemptions += 1

    def plan(self) -> tuple[list[Sequence], list[Chunk]]:
        """The decoding sequences in slot order, and the prefill chunks of this step, the oldest first."""
        decodes = [sequence for sequence in self.running if sequence.decoding]
        left = max(1, self._limits.max_num_batched_tokens - len(decodes) * self._limits.rows)
        chunks = []
        for sequence in sorted(self.running, key=lambda each: each.arrival):
            if sequence.decoding or left == 0:
                continue
            count = min(left, sequence.num_to_prefill - sequence.num_computed)
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
