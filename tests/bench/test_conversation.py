"""Prompts with several questions: who gets asked what, in which place, and how the answers are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specctl.bench.compare import pairs
from specctl.bench.conversation import follow_with, longest, num_requests, shortened
from specctl.bench.journal import FileJournal
from specctl.bench.load import EngineRunner
from specctl.bench.metrics import run_figures
from specctl.bench.outputs import HISTORY, TieRule, compare_outputs
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Block, Job
from specctl.bench.remarks import notes
from specctl.bench.results import Setup, build_report
from specctl.bench.session import Measured, Schedule, Turn, short_jobs
from specctl.bench.workloads import Workload
from specctl.runtime import SamplingParams
from tests.bench.scripted_server import Script
from tests.bench.stand_ins import Clock, ScriptedEngine
from tests.bench.test_endpoint import run as ask

STEPS: list[list[int] | None] = [[5], [6]]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def conversation(*questions: str, index: int = 0, ids: tuple[int, ...] = (1,)) -> Job:
    prompt = Prompt(f"p{index}", "chat", (user(questions[0]),), ids, turns=questions[1:])
    return Job(index, 0, prompt, SamplingParams(max_tokens=8, seed=40))


class Letters:
    """A tokenizer: a prompt's id is its number of messages, an answer's tokens are written as numbers."""

    has_chat_template = True

    def encode(self, text: str) -> list[int]:
        return [len(text)]

    def encode_chat(self, messages: list[dict[str, Any]]) -> list[int]:
        return [len(messages)] * len(messages)

    def decode(self, ids: Any) -> str:
        return " ".join(map(str, ids))


def run_here(engine: ScriptedEngine, *jobs: Job, concurrency: int = 1) -> Block:
    follow = follow_with(Letters())
    runner = EngineRunner("baseline", None, None, engine, clock=engine.clock, follow=follow)  # type: ignore[arg-type]
    return runner.run(jobs, concurrency)


def test_every_turn_is_asked_with_the_models_own_answers() -> None:
    engine = ScriptedEngine(Clock(), {1: STEPS, 3: [[7], [8, 9]], 5: [[1], [2]]})
    first, second, third = run_here(engine, conversation("one", "two", "three")).records
    assert second.job.prompt.messages == (user("one"), assistant("5 6"), user("two"))
    assert third.job.prompt.messages == (*second.job.prompt.messages, assistant("7 8 9"), user("three"))
    assert [each.token_ids for each in (first, second, third)] == [[5, 6], [7, 8, 9], [1, 2]]
    assert [each.job.turn for each in (first, second, third)] == [0, 1, 2]
    assert [each.job.sampling.seed for each in (first, second, third)] == [40, 41, 42]
    assert second.submitted_s == first.last_token_s
    assert third.ttft_s == pytest.approx(0.01)


def test_a_conversation_keeps_its_place_until_it_ends() -> None:
    """Two conversations of two turns and a single question, two at a time: the question waits for a free place."""
    engine = ScriptedEngine(Clock(), {1: STEPS, 3: STEPS})
    jobs = [conversation("a", "b", index=0), conversation("a", "b", index=1), conversation("c", index=2)]
    done = run_here(engine, *jobs, concurrency=2).records
    assert engine.peak == 2
    assert [(each.job.index, each.job.turn) for each in done] == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]
    assert done[-1].submitted_s == pytest.approx(0.04)


def test_turns_behind_a_failed_one_fail_and_say_why() -> None:
    engine = ScriptedEngine(Clock(), {1: STEPS, 3: STEPS})
    engine.broken = 3
    first, second, third = run_here(engine, conversation("one", "two", "three")).records
    assert first.error is None
    assert second.error == "the weights melted"
    assert third.error == "not asked, since turn 2 failed"
    assert (third.job.turn, third.job.name) == (2, "p0 turn 3")
    assert run_figures([Block((first, second, third), 1.0)])["failed"] == 2


def test_a_runner_that_cannot_go_on_says_so() -> None:
    engine = ScriptedEngine(Clock(), {1: STEPS})
    runner = EngineRunner("baseline", None, None, engine, clock=engine.clock)  # type: ignore[arg-type]
    first, second = runner.run([conversation("one", "two")], 1).records
    assert "takes single questions" in (first.error or "")
    assert second.failed


def test_a_server_is_asked_in_turn() -> None:
    script = Script(extra_last={"usage": {"prompt_tokens": 20, "completion_tokens": 6, "prompt_tokens_details": None}})
    block = ask(script, conversation("one", "two", ids=()))
    assert [body["messages"] for body in script.requests] == [
        [user("one")],
        [user("one"), assistant("t5 t6 t7 t8 t9 t2 "), user("two")],
    ]
    assert [each.num_prompt_tokens for each in block.records] == [20, 20]
    assert run_figures([block])["cached_input_tokens"] is None


def test_a_server_that_fails_a_turn_is_not_asked_the_next() -> None:
    script = Script()
    done = ask(script, conversation("one", "500", "three", ids=()), conversation("x", index=1, ids=())).records
    assert [each.error for each in done] == [
        None, "HTTP 500: out of memory", "not asked, since turn 2 failed", None,
    ]  # fmt: skip
    assert len(script.requests) == 3


def test_tokens_out_of_a_prefix_cache_are_counted_and_told() -> None:
    told = {"prompt_tokens": 20, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 15}}
    block = ask(Script(extra_last={"usage": told}), conversation("one", "two", ids=()))
    assert run_figures([block])["cached_input_tokens"] == 30
    report = reported(block)
    assert report["runs"][0]["by_turn"]["2"]["requests"] == 1
    lines = notes(report)
    assert any("Prompt tokens that came out of a prefix cache: 75% (server)" in line for line in lines)
    assert any("ms in turn 1" in line and "ms in turn 2" in line for line in lines)


def reported(block: Block) -> dict[str, Any]:
    class Server:
        name, k, spec, max_concurrency, server = "server", None, None, None, True

    work = Workload("file", (conversation("one", "two").prompt,))
    schedule = Schedule((1,), 1, 0, 0, SamplingParams())
    measured = Measured({(0, 1): [block]}, 1)
    setup = Setup("m", frozenset(), schedule, work, [Server()], compared=False)  # type: ignore[list-item]
    return build_report(setup, measured, {"servers": []}, None)[0]


def test_turns_are_paired_with_the_same_turn() -> None:
    one = run_here(ScriptedEngine(Clock(), {1: STEPS, 3: STEPS}), conversation("one", "two"))
    other = run_here(ScriptedEngine(Clock(), {1: STEPS, 3: STEPS}), conversation("one", "two"))
    assert [(a.job.turn, b.job.turn) for a, b in pairs([one], [other])] == [(0, 0), (1, 1)]


def test_a_turn_behind_another_answer_is_not_compared() -> None:
    """Turn 1 differs at a near-tie, so turn 2 was asked with another history: it says nothing about the draft."""
    one = run_here(ScriptedEngine(Clock(), {1: [[5], [6]], 3: [[7]]}), conversation("one", "two"))
    other = run_here(ScriptedEngine(Clock(), {1: [[5], [4]], 3: [[8]]}), conversation("one", "two"))
    found = compare_outputs(pairs([one], [other]), TieRule(lambda record, place: 1e-4, 1e-3))  # noqa: ARG005
    assert (found.status, found.checked, found.counts) == ("near-tie", 1, {"near-tie": 1, HISTORY: 1})
    assert found.first is not None
    assert (found.first.turn, found.first.token) == (0, 1)


def test_a_wrong_token_in_a_later_turn_is_found_there() -> None:
    one = run_here(ScriptedEngine(Clock(), {1: STEPS, 3: [[7], [8]]}), conversation("one", "two"))
    other = run_here(ScriptedEngine(Clock(), {1: STEPS, 3: [[7], [9]]}), conversation("one", "two"))
    found = compare_outputs(pairs([one], [other]), TieRule(lambda record, place: 2.0, 1e-3))  # noqa: ARG005
    assert (found.status, found.checked) == ("different", 2)
    assert found.first is not None
    assert (found.first.turn, found.first.token) == (1, 1)


def test_a_journal_brings_conversations_back(tmp_path: Path) -> None:
    job = conversation("one", "two")
    block = run_here(ScriptedEngine(Clock(), {1: STEPS, 3: [[7], [8, 9]]}), job)
    turn = Turn(0, 1, (job,), ())
    with FileJournal(tmp_path / "journal", {}) as journal:
        journal.keep(turn, 0, block)
    with FileJournal(tmp_path / "journal", {}) as journal:
        assert journal.known(turn, 0) == block


def test_warm_up_asks_first_turns_alone() -> None:
    work = Workload("file", (conversation("one", "two").prompt,))
    [short] = short_jobs(Schedule((1,), 1, 1, 0, SamplingParams()), work, 1, 4)
    assert short.prompt.turns == ()


def test_room_is_made_for_the_whole_conversation() -> None:
    """Three turns: five messages are five tokens here, and each answer may take 100 and a few to spare."""
    prompts = (conversation("one", "two", "three").prompt, conversation("x", ids=(1,) * 9).prompt)
    assert longest(prompts, Letters(), 100) == 5 + 3 * 116
    assert longest(prompts[1:], Letters(), 100) == 109


def test_turns_may_be_limited() -> None:
    work = Workload("file", (conversation("one", "two", "three").prompt, conversation("x").prompt))
    assert num_requests(work.prompts) == 4
    assert num_requests(shortened(work, 2).prompts) == 3
    assert num_requests(shortened(work, 1).prompts) == 2
    assert shortened(work, None) == work
    assert replace(work.prompts[0], turns=()) == shortened(work, 1).prompts[0]
