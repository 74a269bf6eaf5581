"""transformers' generate as a runner: the same tokens as our own engine, timed as they come."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.bench.load import EngineRunner
from specctl.bench.peers import PEERS, PeerSetup, make_peers, peer_names
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Job, Runner
from specctl.errors import UsageError
from specctl.runtime import EngineOptions, SamplingParams, load_target, make_engine
from tests.runtime.kit import build

PROMPT = tuple(b"one two one two one")


def job(**sampling: object) -> Job:
    return Job(0, 0, Prompt("p0", "all", (), PROMPT), SamplingParams(**{"max_tokens": 12, **sampling}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return str(build("qwen3", root / "target")), str(build("llama", root / "draft", seed=1))


@pytest.fixture(scope="module")
def runners(folders: tuple[str, str]) -> list[Runner]:
    return make_peers(PEERS, PeerSetup(folders[0], "float64", "cpu", frozenset({256}), 3, folders[1]))


def test_all_modes_give_the_tokens_of_the_bundled_runtime(folders: tuple[str, str], runners: list[Runner]) -> None:
    target = load_target(folders[0], device="cpu", dtype="float64")
    own = EngineRunner("baseline", None, None, make_engine(target, None, EngineOptions(max_num_seqs=1)))
    [expected] = own.run([job()], 1).records
    for runner in runners:
        [found] = runner.run([job()], 1).records
        assert found.error is None, runner.name
        assert found.token_ids == expected.token_ids, runner.name
        assert found.finish_reason == expected.finish_reason


def test_times_are_in_order_and_the_prompt_is_no_token(runners: list[Runner]) -> None:
    for runner in runners:
        block = runner.run([job(), job()], 1)
        first, second = block.records
        assert first.submitted_s < first.first_token_s < first.last_token_s <= second.submitted_s  # type: ignore[operator]
        assert block.duration_s >= second.last_token_s - first.submitted_s  # type: ignore[operator]
        assert len(first.token_ids) == 12


def test_names_k_and_one_stream(runners: list[Runner]) -> None:
    assert [(runner.name, runner.k) for runner in runners] == [
        ("transformers", None),
        ("transformers-lookup", 3),
        ("transformers-assisted", 3),
    ]
    assert {runner.max_concurrency for runner in runners} == {1}


def test_sampling_is_seeded(runners: list[Runner]) -> None:
    first, again, other = (
        runners[0].run([job(temperature=1.0, seed=seed)], 1).records[0].token_ids for seed in (1, 1, 2)
    )
    assert first == again != other


def test_eos_ends_the_output(folders: tuple[str, str], runners: list[Runner]) -> None:
    second = runners[0].run([job()], 1).records[0].token_ids[1]
    [runner] = make_peers(["transformers"], PeerSetup(folders[0], "float64", "cpu", frozenset({second}), 3, None))
    [found] = runner.run([job()], 1).records
    assert (len(found.token_ids), found.finish_reason) == (2, "stop")


def test_unknown_peers_and_a_missing_draft_are_named(tmp_path: Path) -> None:
    assert peer_names("transformers, transformers-lookup,transformers") == ["transformers", "transformers-lookup"]
    assert peer_names("") == []
    with pytest.raises(UsageError, match="no peer is called 'transformer'") as caught:
        peer_names("transformer")
    assert caught.value.help == "did you mean transformers?"
    with pytest.raises(UsageError, match="transformers-assisted needs a draft"):
        make_peers(["transformers-assisted"], PeerSetup(str(tmp_path), "float32", "cpu", frozenset(), 4, None))
