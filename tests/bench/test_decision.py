"""The decision itself, on simulated timings: a planted slow-down is found, noise alone decides nothing.

The noise has the size that `benchmarks/noise.py` measured on two busy cores (see docs/bench.md): every request 10 %, a
block of requests as a whole 10 % on top, and slow drift of the machine by a third that hits both sides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import specctl
from specctl.bench.advice import preset
from specctl.bench.records import Block, Job, Record
from specctl.bench.results import Report, Setup, build_report
from specctl.bench.session import Schedule, measure
from specctl.runtime import SamplingParams
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Ngram
from tests.bench.stand_ins import workload
from tests.bench.test_session import Told

LEVELS = (1, 2, 4, 8, 16)
REQUEST_NOISE, BLOCK_NOISE, DRIFT = 0.10, 0.10, 0.33
SLOWER_FROM_8 = {1: 1.8, 2: 1.7, 4: 1.6, 8: 0.7, 16: 0.6}
WORK = workload(*["coding", "math", "summarization", "writing"] * 20)
SPEC = SpecDecodeConfig(Ngram(2, 4), 4)


class Machine:
    """Time that passes for all runners, and how slow the machine is just now."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.block = 0

    def slowness(self) -> float:
        self.block += 1
        return 1 + DRIFT * math.sin(self.block / 17) + self.random.gauss(0, BLOCK_NOISE)


class Noisy:
    """A runner whose TPOT is `10 ms / speed[level]` with noise; prompts differ by up to a half among each other."""

    max_concurrency = None

    def __init__(self, name: str, machine: Machine, speed: dict[int, float], spec: SpecDecodeConfig | None) -> None:
        self.name, self.spec, self.k = name, spec, None if spec is None else spec.num_speculative_tokens
        self._machine, self._speed = machine, speed

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        slow = self._machine.slowness()
        records = []
        for job in jobs:
            own = 1 + (job.index % 16) / 32
            noise = self._machine.random.gauss(1, REQUEST_NOISE)
            tpot = 0.01 * own * slow * noise / self._speed[concurrency]
            records.append(Record(job, 0.0, 0.02, 0.02 + 63 * tpot, list(range(64)), "stop"))
        total = sum(record.last_token_s or 0.0 for record in records)
        return Block(tuple(records), total / concurrency)


def bench(seed: int, speed: dict[int, float]) -> Report:
    return decided(seed, speed)[0]


def decided(seed: int, speed: dict[int, float]) -> tuple[Report, SpecDecodeConfig | None]:
    machine = Machine(seed)
    plain = dict.fromkeys(LEVELS, 1.0)
    runners = [Noisy("baseline", machine, plain, None), Noisy("ngram", machine, speed, SPEC)]
    schedule = Schedule(LEVELS, 5, 0, seed, SamplingParams(), num_prompts=16)
    measured = measure(schedule, WORK, runners, Told())
    setup = Setup("demo", frozenset(), schedule, WORK, runners)
    return build_report(setup, measured, {}, None)


def test_a_planted_slow_down_at_8_is_found_in_ten_of_ten() -> None:
    speed = SLOWER_FROM_8
    found = [bench(seed, speed)["verdict"]["keep_up_to_concurrency"] for seed in range(10)]
    assert found == [4] * 10


def test_the_setting_that_follows_stops_drafting_above() -> None:
    verdict = bench(0, SLOWER_FROM_8)["verdict"]
    assert '"num_speculative_tokens_per_batch_size": [[1, 4, 4], [5, ' in verdict["settings"]["vllm"]["text"]
    assert "drop it above" in verdict["text"]


def test_the_preset_that_is_written_says_the_same_and_checks_clean() -> None:
    report, kept = decided(0, SLOWER_FROM_8)
    assert kept is not None
    text = preset(kept, report)
    assert "[1, 4, 4]" in str([step.as_list() for step in kept.schedule])
    assert text.startswith("# Keep ngram (k=4) up to concurrency 4 and drop it above")
    checked = specctl.check(text, form="yaml", engine="specctl")
    assert (checked.valid, checked.spec) == (True, kept.as_dict())


def test_the_same_against_itself_is_within_noise_in_nineteen_of_twenty() -> None:
    quiet = 0
    for seed in range(100, 120):
        rows = bench(seed, dict.fromkeys(LEVELS, 1.0))["comparison"]
        quiet += all(row["decision"] == "within noise" for row in rows)
    assert quiet >= 19
