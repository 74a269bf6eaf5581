"""Stale rows of a cache are found and named; sound methods leave none, whatever is rejected, preempted or shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.integrity import VARIABLE, RowLedger, cache_faults
from specctl.runtime.kv_cache import Span
from specctl.spec.config import SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel, Ngram
from tests.runtime.head_kit import make_head
from tests.runtime.kit import ask, run

CHECKED = EngineOptions(3, None, 16, check_cache=True)
REQUESTS = [ask(str(n), list(b"abcabc") * (n + 1), ignore_eos=True, max_tokens=20) for n in range(5)]


def engine_of(kind: str, target: Target, folder: Path, draft: Path, options: EngineOptions = CHECKED) -> Engine:
    tree = Tree(topk=2, num_nodes=5) if kind.endswith("-tree") else None
    kind = kind.removesuffix("-tree")
    if kind == "ngram":
        return make_engine(target, SpecDecodeConfig(Ngram(1, 3), 3), options)
    if kind == "draft_model":
        return make_engine(target, SpecDecodeConfig(DraftModel(), 3, model=str(draft), tree=tree), options)
    made = make_head(kind, target, folder / kind)
    return make_engine(target, SpecDecodeConfig(made.method, 3, model=str(made.folder), tree=tree), options)


KINDS = ("ngram", "draft_model", "draft_model-tree", "eagle", "eagle-tree", "eagle3", "peagle", "mtp-mimo", "dflash")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "prefixes"])
def test_sound_methods_leave_no_stale_rows(
    kind: str, shared: bool, exact: Callable[..., Target], relative: Callable[..., Path], tmp_path: Path
) -> None:
    options = replace(CHECKED, prefix_caching=shared)
    engine = engine_of(kind, exact(), tmp_path, relative(), options)
    run(engine, REQUESTS)
    run(engine, REQUESTS[::-1])
    assert engine.stats.num_drafts > 20
    assert cache_faults(engine) == ()


def test_rows_of_another_request_in_the_drafts_cache_are_found(
    exact: Callable[..., Target], checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    engine = engine_of("draft_model", exact(), tmp_path, checkpoint("llama", 1))
    proposer: Any = engine._drafting.proposer
    proposer.start = lambda sequence: proposer._computed.setdefault(sequence.slot, 4)  # not begun anew
    run(
        engine,
        [ask(name, list(text), ignore_eos=True) for name, text in (("a", b"abcabc"), ("b", b"uvwxyz"))],
        sound=False,
    )
    assert "stale row in the draft's cache: row" in cache_faults(engine)[0]
    assert "was never written" in cache_faults(engine)[0]


def test_guessed_rows_that_a_head_takes_for_true_ones_are_found(exact: Callable[..., Target], tmp_path: Path) -> None:
    engine = engine_of("eagle", exact(), tmp_path, tmp_path)
    proposer: Any = engine._drafting.proposer
    observe = proposer.observe

    def skipping(sequence: Any, hidden: Any = None) -> None:
        observe(sequence, hidden)
        waiting = torch.cat(proposer._waiting[sequence.slot])
        if 1 < len(waiting) < 4:  # a catch-up that leaves out its first row
            proposer._waiting[sequence.slot] = [waiting[1:]]
            proposer._computed[sequence.slot] += 1

    proposer.observe = skipping
    schooled: Any = Schooled(proposer, run(Engine(exact(), None, CHECKED), REQUESTS[:1]))
    engine._drafting.proposer = schooled
    run(engine, REQUESTS[:1], sound=False)
    assert "stale row in the draft's cache" in cache_faults(engine)[0]
    assert "holds a guess" in cache_faults(engine)[0]


class Schooled:
    """Lets the target accept one drafted token a step, so that there are rows to be written again."""

    def __init__(self, proposer: Any, plain: Any) -> None:
        self._proposer = proposer
        self._truth = {name: found["tokens"] for name, found in plain.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        drafts = self._proposer.propose(sequences, limits)
        right = [self._truth[s.request.id][s.num_output :][:1] for s in sequences]
        return [Draft([*first, *draft.tokens[1:]]) for first, draft in zip(right, drafts, strict=True)]


def test_a_tree_whose_path_is_not_moved_is_found(
    exact: Callable[..., Target], relative: Callable[..., Path], tmp_path: Path
) -> None:
    engine = engine_of("draft_model-tree", exact(), tmp_path, relative())
    rows: Any = engine._rows
    rows.moved = lambda *_: None
    run(engine, REQUESTS, sound=False)
    assert "stale row in the target's cache" in cache_faults(engine)[0]


def test_a_sequence_that_counts_too_far_is_found(exact: Callable[..., Target], tmp_path: Path) -> None:
    engine = engine_of("ngram", exact(), tmp_path, tmp_path)
    engine.add(REQUESTS[0])
    for _ in range(3):
        engine.step()
    sequence = engine._scheduler.running[0]
    sequence.tokens.append(7)
    sequence.num_computed += 2
    engine.step()
    assert "was never written" in cache_faults(engine)[0] or "was written by" in cache_faults(engine)[0]


def test_the_ledger() -> None:
    ledger = RowLedger("test's")
    ledger.wrote([5, 6, 7, 8], [Span(0, 0, 3), Span(1, 0, 1)])
    ledger.check(0, [5, 6, 7])
    ledger.moved(0, 0, [0, 2])
    ledger.check(0, [5, 7])
    ledger.copied(0, 2, 2)
    ledger.check(2, [5, 7])
    assert ledger.faults == []
    ledger.wrote([9], [Span(0, 1, 1)], guessed=True)
    ledger.check(0, [5, 9])
    ledger.check(1, [8, 3])
    ledger.check(2, [5, 6])
    assert [fault.split("cache: ")[1] for fault in ledger.faults] == [
        "row 1 of slot 0 holds a guess (token 9), token 9 stands there",
        "row 1 of slot 1 was never written, token 3 stands there",
        "row 1 of slot 2 was written by token 7, token 6 stands there",
    ]


def test_the_environment_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not EngineOptions().check_cache
    monkeypatch.setenv(VARIABLE, "1")
    assert EngineOptions().check_cache
