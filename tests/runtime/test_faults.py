"""A fault ends what it belongs to and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from specctl.runtime import Engine, EngineOptions, Target
from specctl.runtime.draft import Draft
from specctl.runtime.proposers.ngram import NgramProposer
from tests.runtime.kit import ask, run

PROMPTS = {"good": list(b"abcabcabcabc"), "bad": list(b"xyxyxyxyxyxy"), "fine": list(b"0101010101")}


class Faulty(NgramProposer):
    """Throws in one deed for the request called bad, or drafts what nobody can read."""

    def __init__(self, deed: str) -> None:
        super().__init__(3, 1, 3)
        self._deed = deed

    def _trip(self, deed: str, sequence: Any) -> None:
        if deed == self._deed and sequence.request.id == "bad":
            raise ValueError(f"thrown in {deed}")

    def start(self, sequence: Any) -> None:
        self._trip("start", sequence)
        super().start(sequence)

    def propose(self, sequences: Sequence[Any], limits: Sequence[int]) -> list[Draft]:
        for sequence in sequences:
            self._trip("propose", sequence)
        drafts = super().propose(sequences, limits)
        odd = {"unreadable": Draft([10**6]), "too long": Draft([1] * 500)}
        return [
            odd.get(self._deed, draft) if s.request.id == "bad" else draft
            for s, draft in zip(sequences, drafts, strict=True)
        ]

    def observe(self, sequence: Any, hidden: Any = None) -> None:
        self._trip("observe", sequence)
        super().observe(sequence, hidden)

    def finish(self, sequence: Any) -> None:
        self._trip("finish", sequence)
        super().finish(sequence)


@pytest.mark.parametrize("deed", ["start", "propose", "observe", "finish", "unreadable", "too long"])
def test_a_proposer_that_throws_is_switched_off_for_that_request(
    deed: str, exact: Callable[..., Target], caplog: pytest.LogCaptureFixture
) -> None:
    requests = [ask(name, prompt, ignore_eos=True) for name, prompt in PROMPTS.items()]
    plain = run(Engine(exact(), None, EngineOptions(4)), requests)
    sound = run(Engine(exact(), NgramProposer(3, 1, 3), EngineOptions(4)), requests)
    engine = Engine(exact(), Faulty(deed), EngineOptions(4))
    with caplog.at_level(logging.ERROR, "specctl.runtime"):
        found = run(engine, requests, failures=1)
    for name in PROMPTS:
        assert found[name]["tokens"] == plain[name]["tokens"]
        assert found[name]["finish"] == "length"
    assert found["good"]["stats"] == sound["good"]["stats"], "the others draft on"
    assert found["fine"]["stats"] == sound["fine"]["stats"]
    if deed != "finish":
        assert found["bad"]["stats"].num_drafts == 0
    assert engine.counters.proposer_failures == 1
    (record,) = caplog.records
    assert "request=bad goes on without drafts" in record.getMessage()
    assert not engine.has_work()


def test_a_target_that_throws_ends_only_the_request_it_throws_for(
    exact: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = exact()
    requests = [ask(name, prompt, ignore_eos=True) for name, prompt in PROMPTS.items()]
    plain = run(Engine(target, None, EngineOptions(4)), requests)
    forward = target.model.forward

    def trip(tokens: Any, *rest: Any) -> Any:
        if 120 in tokens and len(tokens) < 100:
            raise RuntimeError("thrown in the target")
        return forward(tokens, *rest)

    monkeypatch.setattr(target.model, "forward", trip)
    engine = Engine(target, NgramProposer(3, 1, 3), EngineOptions(4))
    found = run(engine, requests)
    assert found["bad"]["finish"] == "error"
    assert found["bad"]["tokens"] == []
    for name in ("good", "fine"):
        if 120 not in plain[name]["tokens"]:
            assert found[name]["tokens"] == plain[name]["tokens"]
    assert not engine.has_work()
    assert engine.kv_usage == 0


def test_a_fault_in_one_requests_own_rows_ends_that_request(
    exact: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [ask(name, prompt, ignore_eos=True, logprobs=1) for name, prompt in PROMPTS.items()]
    plain = run(Engine(exact(), None, EngineOptions(4)), requests)
    engine = Engine(exact(), None, EngineOptions(4))
    take = engine._take

    def trip(sequence: Any, *rest: Any) -> Any:
        if sequence.request.id == "bad" and sequence.num_output == 4:
            raise KeyError("thrown while appending")
        return take(sequence, *rest)

    monkeypatch.setattr(engine, "_take", trip)
    found = run(engine, requests)
    assert found["bad"]["finish"] == "error"
    assert found["bad"]["tokens"] == plain["bad"]["tokens"][:4]
    assert {name: found[name] for name in ("good", "fine")} == {name: plain[name] for name in ("good", "fine")}
