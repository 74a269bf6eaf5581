"""The bundled heads of the demo: each is served by its name, changes no token, and EAGLE-3 earns its place."""

from __future__ import annotations

import json

import pytest
import torch

from specctl.resources import bundled_dir
from specctl.runtime import EngineOptions, SpecStats, Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS
from tests.runtime.kit import ask, run

HEADS = {
    "pard": "demo-pard",
    "eagle": "demo-eagle",
    "eagle3": "demo-eagle3",
    "mtp": "demo-mtp",
    "dflash": "demo-dflash",
    "medusa": "demo-medusa",
    "mlp_speculator": "demo-mlp-speculator",
}
LIMIT = 100_000_000


@pytest.fixture(scope="module")
def target() -> Target:
    torch.set_num_threads(1)
    return load_target("demo", device="cpu", dtype="float64")


@pytest.fixture(scope="module")
def prompts(target: Target) -> list[list[int]]:
    """Two bundled prompts of each category."""
    rows = [json.loads(line) for line in (bundled_dir() / "prompts.jsonl").read_text("utf-8").splitlines()]
    return [target.encode_chat(row["messages"]) for row in rows[::10]]


@pytest.fixture(scope="module")
def plain(target: Target, prompts: list[list[int]]) -> dict[str, list[int]]:
    return outputs(target, None, prompts)[0]


def outputs(
    target: Target, spec: SpecDecodeConfig | None, prompts: list[list[int]]
) -> tuple[dict[str, list[int]], SpecStats]:
    """Greedy outputs by request, and the counters of all of them."""
    engine = make_engine(target, spec, EngineOptions(max_num_seqs=len(prompts), max_model_len=224))
    found = run(engine, [ask(str(i), ids, max_tokens=48) for i, ids in enumerate(prompts)])
    return {name: each["tokens"] for name, each in found.items()}, engine.stats


@pytest.mark.parametrize("method", HEADS)
def test_a_bundled_head_changes_no_token(
    method: str,
    target: Target,
    prompts: list[list[int]],
    plain: dict[str, list[int]],
) -> None:
    found, stats = outputs(target, SpecDecodeConfig(METHODS[method](), 5, model=HEADS[method]), prompts)
    assert found == plain
    length = stats.mean_acceptance_length
    assert length is not None
    assert length > 1.5


def test_eagle3_is_ahead_of_eagle_and_medusa(target: Target, prompts: list[list[int]]) -> None:
    length = {}
    for method in ("eagle3", "eagle", "medusa"):
        spec = SpecDecodeConfig(METHODS[method](), 5, model=HEADS[method])
        length[method] = outputs(target, spec, prompts)[1].mean_acceptance_length or 0.0
    assert length["eagle3"] >= 2.5
    assert length["eagle3"] > max(length["eagle"], length["medusa"])


def test_all_heads_learnt_from_the_same_tokens() -> None:
    facts = [json.loads((bundled_dir() / name / "training.json").read_text("utf-8")) for name in HEADS.values()]
    assert {each["method"] for each in facts} == set(HEADS)
    alike = ("target", "recording_tokens", "seed", "passes", "steps", "tokens_seen")
    assert len({tuple(each[key] for key in alike) for each in facts}) == 1


@pytest.mark.parametrize("name", HEADS.values())
def test_a_card_tells_the_figures_that_lie_beside_it(name: str) -> None:
    folder = bundled_dir() / name
    card = (folder / "README.md").read_text("utf-8")
    found = json.loads((folder / "evaluation.json").read_text("utf-8"))
    facts = json.loads((folder / "training.json").read_text("utf-8"))
    assert f"{facts['tokens_seen']} tokens seen" in card
    assert f"{found['mean_acceptance_length']:.2f}" in card
    assert found["outputs_identical_to_plain"] == found["prompts"]
    assert "learn from these same tokens" in card


def test_all_bundled_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in bundled_dir().rglob("*") if path.is_file()) <= LIMIT
