"""How many CPU threads to measure with, found by a short trial.

A small model's step is a chain of short kernels. Two threads are faster on two idle cores, and ten times slower when
another process holds one of them, because each kernel then waits for the thread that is not running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from specctl.bench.records import Clock, Job, Runner

ROUNDS = 2
TRIAL_TOKENS = 12


def thread_counts(most: int) -> list[int]:
    """What is tried where torch would take `most` threads: 1, 2, 4, … and `most` itself."""
    return sorted({most, *(1 << power for power in range(most.bit_length()))})


def fastest(
    runner: Runner,
    jobs: Sequence[Job],
    level: int,
    counts: Sequence[int],
    set_threads: Callable[[int], None],
    clock: Clock = time.perf_counter,
) -> int:
    """Set and return the count with which one request alone and `level` together take the least time, best of two."""
    seconds = dict.fromkeys(counts, float("inf"))
    for _ in range(ROUNDS):
        for count in counts:
            set_threads(count)
            start = clock()
            runner.run(jobs[:1], 1)
            runner.run(jobs[:level], level)
            seconds[count] = min(seconds[count], clock() - start)
    best = min(counts, key=lambda count: seconds[count])
    set_threads(best)
    return best
