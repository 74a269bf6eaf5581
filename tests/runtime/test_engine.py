"""The engine's manners: what it refuses, how it shares its slots and its budget, what it reports."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specctl.errors import MissingError, SpecctlError
from specctl.modelinfo.tokens import token_table
from specctl.runtime import (
    Engine,
    EngineOptions,
    Target,
    environment,
    load_target,
    make_engine,
    near_tie_margin,
    top_margin,
)
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, DSpark, Ngram
from tests.runtime.kit import EOS, ask, byte_tokenizer, run


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ([], "empty"),
        ([1] * 96, "95"),
        ([1, 258], "258"),
        ([-1], "-1"),
        ([1.5], r"1\.5"),
        (["a"], "'a'"),
        ("abc", "str"),
    ],
)
def test_prompts_that_cannot_run_are_refused(prompt: Any, says: str, exact: Callable[..., Target]) -> None:
    engine = Engine(exact(), None, EngineOptions())
    with pytest.raises(SpecctlError, match=says):
        engine.add(ask("x", prompt))
    assert not engine.has_work()


def test_an_id_may_not_run_twice(exact: Callable[..., Target]) -> None:
    engine = Engine(exact(), None, EngineOptions())
    engine.add(ask("x", [1]))
    with pytest.raises(SpecctlError, match="already running"):
        engine.add(ask("x", [2]))


@pytest.mark.parametrize("length", [94, 95])
@pytest.mark.parametrize("k", [1, 5])
def test_a_prompt_at_the_context_limit(length: int, k: int, exact: Callable[..., Target]) -> None:
    prompt = [7, 8] * 47 + [7]
    setting = SpecDecodeConfig(Ngram(1, 3), k)
    request = ask("x", prompt[-length:], ignore_eos=True)
    plain = run(Engine(exact(), None, EngineOptions()), [request])["x"]
    drafted = run(make_engine(exact(), setting, EngineOptions()), [request])["x"]
    assert drafted["tokens"] == plain["tokens"]
    assert len(plain["tokens"]) == 96 - length
    assert plain["finish"] == drafted["finish"] == "length"


def test_prefill_is_chunked_and_first_come_first_served(exact: Callable[..., Target]) -> None:
    engine = Engine(exact(), None, EngineOptions(max_num_seqs=2, max_num_batched_tokens=10))
    for name, size in (("a", 25), ("b", 8), ("c", 3)):
        engine.add(ask(name, [1] * size, max_tokens=2, ignore_eos=True))
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step in range(12):
        assert engine.num_running <= 2
        for emission in engine.step():
            first.setdefault(emission.request_id, step)
            if emission.finish_reason:
                last[emission.request_id] = step
    # 25 tokens need three steps of ten; b's eight share the third with the rest of a; c waits for a slot.
    assert first == {"a": 2, "b": 3, "c": 4}
    assert last == {"a": 3, "b": 4, "c": 5}
    assert engine.kv_usage == 0


def test_kv_usage_counts_computed_tokens(exact: Callable[..., Target]) -> None:
    engine = Engine(exact(), None, EngineOptions(max_num_seqs=2, max_model_len=48))
    engine.add(ask("a", [1] * 24, ignore_eos=True))
    engine.step()
    assert engine.kv_usage == pytest.approx(2 / 6), "two blocks of 16 tokens, of six"


def test_verification_is_counted_before_a_stop_cuts_the_block(
    exact: Callable[..., Target], checkpoint: Callable[..., Path]
) -> None:
    """The draft is the target itself, so all four tokens are accepted though only two more are wanted."""
    engine = make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(checkpoint())), EngineOptions())
    result = run(engine, [ask("x", [1, 2, 3], max_tokens=3, ignore_eos=True)])["x"]
    assert len(result["tokens"]) == 3
    stats = result["stats"]
    assert (stats.num_verify_steps, stats.num_draft_tokens, stats.num_accepted_tokens) == (1, 4, 4)
    assert engine.stats == stats


def test_a_draft_with_a_shorter_context_stops_drafting_in_time(
    exact: Callable[..., Target], checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "short")
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"max_position_embeddings": 96', '"max_position_embeddings": 20'))
    engine = make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(folder)), EngineOptions())
    request = ask("x", [1, 2, 3], max_tokens=40, ignore_eos=True)
    assert (
        run(engine, [request])["x"]["tokens"] == run(Engine(exact(), None, EngineOptions()), [request])["x"]["tokens"]
    )
    assert 0 < engine.stats.num_drafts < engine.stats.num_verify_steps


def test_a_draft_with_another_vocabulary_is_refused_with_proof(
    exact: Callable[..., Target], checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "other")
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["<more>"])
    tokenizer.save_pretrained(folder)
    engine = make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(folder)), EngineOptions())
    assert "the added token 258 ('<more>') only the draft has" in engine.notes[0]
    table = (folder / "tokenizer.json").read_text("utf-8")
    (folder / "tokenizer.json").write_text(
        table.replace('"a": 97', '"a": 98').replace('"b": 98', '"b": 97', 1), "utf-8"
    )
    token_table.cache_clear()
    with pytest.raises(SpecctlError, match=r"id 97 is 'a' for the target and 'b' for the draft; 256 of 258 ids agree"):
        make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(folder)), EngineOptions())
    for file in folder.glob("tokenizer*"):
        file.unlink()
    make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(folder)), EngineOptions())
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"vocab_size": 258', '"vocab_size": 512'))
    with pytest.raises(SpecctlError, match=r"512 tokens.*258"):
        make_engine(exact(), SpecDecodeConfig(DraftModel(), 4, model=str(folder)), EngineOptions())


def test_settings_that_do_not_run_here_say_so(exact: Callable[..., Target]) -> None:
    with pytest.raises(SpecctlError, match="num_speculative_tokens is None"):
        make_engine(exact(), SpecDecodeConfig(Ngram()), EngineOptions())
    with pytest.raises(MissingError, match="no-such-draft"):
        make_engine(exact(), SpecDecodeConfig(DraftModel(), 3, model="no-such-draft"), EngineOptions())
    with pytest.raises(SpecctlError, match="dspark"):
        make_engine(exact(), SpecDecodeConfig(DSpark(), 3, model="x"), EngineOptions())
    assert make_engine(exact(), SpecDecodeConfig(Ngram(shared_pool=True), 3), EngineOptions()).notes
    assert not make_engine(exact(), SpecDecodeConfig(Ngram(), 3), EngineOptions()).notes


@pytest.mark.parametrize("field", ["max_num_seqs", "max_model_len", "max_num_batched_tokens"])
def test_limits_below_one_are_named(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        EngineOptions(**{field: 0})


def test_facts_for_reports(checkpoint: Callable[..., Path], exact: Callable[..., Target]) -> None:
    target = load_target(str(checkpoint()), device="cpu")
    assert (target.dtype, target.device, target.vocab_size, target.max_model_len) == ("float32", "cpu", 258, 96)
    assert target.eos_token_ids == {EOS}
    assert near_tie_margin(target) == 1e-3
    assert near_tie_margin(exact()) == 0
    assert top_margin(exact(), [1, 2, 3]) > 0
    assert set(environment(target)) == {"specctl", "engine", "release", "torch", "device", "dtype", "threads"}
    with pytest.raises(SpecctlError, match="chat template"):
        target.encode_chat([{"role": "user", "content": "hi"}])
