"""A stopped run goes on where it stood; a pilot decides how often to repeat; prompts are not used twice too soon."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from specctl.bench.journal import FileJournal, plan_key
from specctl.bench.pilot import repeats_needed
from specctl.bench.records import Block, Job, Record
from specctl.bench.session import Measured, Schedule, Turn, measure, plan_turns, uses_of_a_prompt
from specctl.errors import MissingError, UsageError
from specctl.runtime import SamplingParams, SpecStats
from tests.bench.stand_ins import block, record, workload
from tests.bench.test_session import Told

WORK = workload(*["coding", "math"] * 8)
SCHEDULE = Schedule((1, 4), 3, 0, 0, SamplingParams())


class Counting:
    """A runner that notes its calls and can be stopped at one."""

    max_concurrency = None
    spec = None
    k = None

    def __init__(self, name: str, stop_at: int | None = None) -> None:
        self.name, self.stop_at, self.calls = name, stop_at, 0

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:  # noqa: ARG002
        if self.calls == self.stop_at:
            raise KeyboardInterrupt
        self.calls += 1
        stats = SpecStats(num_drafts=1, accepted_per_position=[1])
        records = [Record(each, 0.0, 0.1, 0.2 + each.index, [1, 2], "stop", stats, gaps_s=[0.1]) for each in jobs]
        return Block(tuple(records), 1.5, stats, ("odd",), 0.1, 0.2)


def run(path: Path, key: dict[str, object], stop_at: int | None = None) -> tuple[Measured, list[Counting]]:
    runners = [Counting("baseline"), Counting("ngram", stop_at)]
    with FileJournal(path, key) as journal:
        return measure(SCHEDULE, WORK, runners, Told(), journal=journal), runners


def test_a_stopped_run_goes_on_and_ends_with_the_same_figures(tmp_path: Path) -> None:
    whole, full = run(tmp_path / "whole", {"seed": 0})
    path = tmp_path / "stopped"
    first, _ = run(path, {"seed": 0}, stop_at=4)
    assert (first.interrupted, sum(len(blocks) for blocks in first.blocks.values()) < 30) == (True, True)
    second, rest = run(path, {"seed": 0})
    assert second.blocks == whole.blocks
    assert rest[1].calls == full[1].calls - 4
    third, none = run(path, {"seed": 0})
    assert third.blocks == whole.blocks
    assert [runner.calls for runner in none] == [0, 0]


def test_a_line_cut_off_while_writing_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole, _ = run(path, {"seed": 0})
    text = path.read_text()
    path.write_text(text[:-40])
    again, runners = run(path, {"seed": 0})
    assert again.blocks == whole.blocks
    assert sum(runner.calls for runner in runners) == 1


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    run(path, {"seed": 0, "target": "demo"})
    with pytest.raises(UsageError, match=r"of another run \(other seed\)"):
        run(path, {"seed": 1, "target": "demo"})
    path.write_text("not ours\n")
    with pytest.raises(UsageError, match="no journal of a bench"):
        run(path, {"seed": 0})
    with pytest.raises(MissingError, match="cannot use"):
        run(tmp_path, {"seed": 0})


def noisy(repeats: int, noise: float) -> Measured:
    """Blocks of 16 requests, the candidate twice as fast, each pair of blocks with its own luck."""
    rng = random.Random(1)
    found = Measured(repeats=repeats)
    for repeat in range(repeats):
        for part in range(4):
            luck = rng.uniform(1 - noise, 1 + noise)
            indices = range(part * 4, part * 4 + 4)
            base = block(*(record(n, repeat, tpot_s=0.02) for n in indices))
            fast = block(*(record(n, repeat, tpot_s=0.01 * luck) for n in indices))
            found.blocks.setdefault((0, 1), []).append(base)
            found.blocks.setdefault((1, 1), []).append(fast)
    return found


def test_a_quiet_pilot_needs_few_more_and_a_noisy_one_many() -> None:
    quiet, loud = (repeats_needed(noisy(2, noise), 0.05, 0) for noise in (0.0, 0.2))
    assert quiet <= 8
    assert loud > 2 * quiet
    assert repeats_needed(noisy(2, 0.2), 0.1, 0) == pytest.approx(loud / 4, abs=1)


def test_the_pilot_bounds_the_repeats() -> None:
    told = Told()
    runners = [Counting("baseline"), Counting("ngram")]
    many = replace(SCHEDULE, repeats=9)
    measured = measure(many, WORK, runners, told, needed=lambda seen: seen.repeats + 3)
    assert measured.repeats == 5
    assert told.done == told.total == 5 * 2 * 2 * 16


def turns(prompts: int, repeats: int, levels: tuple[int, ...]) -> list[Turn]:
    schedule = replace(SCHEDULE, repeats=repeats, concurrency=levels, num_prompts=8)
    return list(plan_turns(schedule, workload(*["all"] * prompts), [Counting("baseline")]))


def test_repeats_use_other_prompts_while_there_are_any() -> None:
    used = [job.index for turn in turns(48, 3, (1, 4)) for job in turn.jobs]
    assert sorted(used) == list(range(48))


def test_at_one_level_no_prompt_comes_twice_before_all_have_come() -> None:
    """Five repeats of 8 out of 40 prompts at each of three levels."""
    for level in (1, 2, 4):
        used = [job.index for turn in turns(40, 5, (1, 2, 4)) if turn.concurrency == level for job in turn.jobs]
        assert sorted(used) == list(range(40))
    schedule = replace(SCHEDULE, repeats=5, concurrency=(1, 2, 4), num_prompts=8)
    assert uses_of_a_prompt(schedule, workload(*["all"] * 40), 5) == 3
    assert uses_of_a_prompt(replace(schedule, concurrency=(1,)), workload(*["all"] * 40), 5) == 1


def test_a_first_line_cut_off_begins_anew_and_odd_rows_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"key": {"se')
    whole, _ = run(path, {"seed": 0})
    with path.open("a") as file:
        file.write('{"place": 7}\n[1]\n{"records": []}\n')
    again, runners = run(path, {"seed": 0})
    assert again.blocks == whole.blocks
    assert [runner.calls for runner in runners] == [0, 0]


def test_other_text_under_the_same_name_is_another_run() -> None:
    order = SimpleNamespace(target="demo", device="cpu", dtype="auto", threads=None)
    keys = [
        plan_key(order, SCHEDULE, replace(WORK, prompts=(replace(WORK.prompts[0], **change),)), [])  # type: ignore[arg-type]
        for change in ({}, {"turns": ("and now?",)}, {"messages": ({"role": "user", "content": "y"},)})
    ]
    assert len({str(key) for key in keys}) == 3
