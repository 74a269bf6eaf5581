"""The trial that chooses the number of threads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specctl.bench.records import Block, Job
from specctl.bench.threads import fastest, thread_counts
from specctl.spec.config import SpecDecodeConfig
from tests.bench.stand_ins import Clock, job


class Machine:
    """Takes `seconds[threads]` for each run; the first run of all is ten seconds slower."""

    name = "baseline"
    k: int | None = None
    spec: SpecDecodeConfig | None = None
    max_concurrency: int | None = None

    def __init__(self, seconds: dict[int, float]) -> None:
        self.clock = Clock()
        self.seconds = seconds
        self.threads = 0
        self.levels: list[tuple[int, int]] = []

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        self.clock.now += self.seconds[self.threads] + (0 if self.levels else 10)
        self.levels.append((len(jobs), concurrency))
        return Block((), 0.0)

    def set_threads(self, count: int) -> None:
        self.threads = count


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_counts(most: int, counts: list[int]) -> None:
    assert thread_counts(most) == counts


@pytest.mark.parametrize("best", [1, 2, 4])
def test_the_fastest_count_wins_and_stays_set_whoever_was_cold(best: int) -> None:
    machine = Machine({count: 1.0 if count == best else 1.5 for count in (1, 2, 4)})
    found = fastest(machine, [job(n) for n in range(4)], 3, [1, 2, 4], machine.set_threads, machine.clock)
    assert found == machine.threads == best
    assert machine.levels[:2] == [(1, 1), (3, 3)]
