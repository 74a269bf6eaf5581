"""Each recipe learns, and what it saves is the checkpoint of its method: recognised, served, lossless."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors import safe_open
from transformers import Qwen3Config, Qwen3ForCausalLM

from specctl.modelinfo.recognise import recognise
from specctl.runtime import EngineOptions, Target, load_target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.heads.eagle3 import load_eagle3
from specctl.runtime.models.heads.files import open_head
from specctl.runtime.models.hidden import FINAL
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS
from tests.runtime.kit import SIZES, ask, build, run
from train.eagle3 import taps_of
from train.heads.batches import Recording
from train.heads.blocks import DFlashRecipe, PardRecipe
from train.heads.fit import Fit, Plan, fit
from train.heads.last_state import MedusaRecipe, MlpSpeculatorRecipe
from train.heads.parts import Sizes
from train.heads.recipe import Recipe, Teacher, teacher_of
from train.heads.unrolled import Eagle3Recipe, EagleRecipe, MtpRecipe
from train.heads.vocabulary import common_tokens, covered
from train.recording import Answer, answers, load_answers, save_answers, save_states

TAPS = taps_of(3)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    torch.set_num_threads(1)
    return load_target(str(build("llama", tmp_path_factory.mktemp("target"))), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def recording(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder, rng = tmp_path_factory.mktemp("recording"), Random(3)
    prompts = [[rng.randrange(256) for _ in range(rng.randint(2, 9))] for _ in range(24)]
    save_answers(folder, list(answers(target, prompts, 14, 9)), {"target": "tiny"})
    save_states(folder, target, (*TAPS, FINAL))
    return Recording(folder, held_out=4)


def pard(teacher: Teacher) -> PardRecipe:
    """From a tiny draft model of one layer."""
    config = Qwen3Config(**SIZES | {"num_hidden_layers": 1, "head_dim": 8, "tie_word_embeddings": True})
    torch.manual_seed(5)
    weights = {name: w.clone() for name, w in Qwen3ForCausalLM(config).state_dict().items() if "lm_head" not in name}
    raw = json.loads(config.to_json_string(use_diff=False)) | {"architectures": ["Qwen3ForCausalLM"]}
    return PardRecipe(teacher, weights, Sizes(32, 48, 4, 2, 8, config.rms_norm_eps), raw)


RECIPES: dict[str, Callable[[Teacher, Recording], Recipe]] = {
    "eagle": lambda teacher, _: EagleRecipe(teacher),
    "eagle3": lambda teacher, rec: Eagle3Recipe(teacher, common_tokens(rec, 96), TAPS, steps=3),
    "mtp": lambda teacher, _: MtpRecipe(teacher, steps=3),
    "medusa": lambda teacher, _: MedusaRecipe(teacher),
    "mlp_speculator": lambda teacher, _: MlpSpeculatorRecipe(teacher),
    "pard": lambda teacher, _: pard(teacher),
    "dflash": lambda teacher, _: DFlashRecipe(teacher, TAPS),
}


@pytest.mark.parametrize("method", RECIPES)
def test_the_loss_falls(method: str, target: Target, recording: Recording) -> None:
    torch.manual_seed(1)
    recipe = RECIPES[method](teacher_of(target, (*TAPS, FINAL)), recording)
    recipe.peak = 2e-2  # so narrow a head can take, and needs, larger steps
    steps, batch, losses = Fit(recipe, 30), recording.batch(recording.train[:8]), []
    for _ in range(30):
        loss = recipe.loss(batch)
        losses.append(loss.item())
        steps.update(loss)
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


@pytest.mark.parametrize("method", RECIPES)
def test_the_checkpoint_is_recognised_and_changes_no_token(
    method: str, target: Target, recording: Recording, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    recipe = RECIPES[method](teacher_of(target, (*TAPS, FINAL)), recording)
    fit(recipe, recording, Plan(passes=2.5, rows=8), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert recognise(config, list(file.keys())) == method
    facts = json.loads((tmp_path / "training.json").read_text("utf-8"))
    assert (facts["steps"], facts["method"]) == (5, method)
    assert facts["recording_tokens"] == recording.size(recording.train)
    exact = load_target(str(target.folder), device="cpu", dtype="float64")
    asked = [ask(str(i), list(text), ignore_eos=True) for i, text in enumerate((b"a", b"some words", b"7 7 7 7 7"))]
    plain = run(make_engine(exact, None, EngineOptions(max_num_seqs=3)), asked)
    spec = SpecDecodeConfig(METHODS[method](), 3, model=str(tmp_path))
    found = run(make_engine(exact, spec, EngineOptions(max_num_seqs=3)), asked)
    assert {name: each["tokens"] for name, each in found.items()} == {n: each["tokens"] for n, each in plain.items()}
    assert all(each["stats"].num_drafts > 0 for each in found.values())


def test_an_unrolled_head_scores_in_training_what_it_drafts(
    target: Target, recording: Recording, tmp_path: Path
) -> None:
    """The logits of training's second guess are those that the served head gives after its first."""
    torch.manual_seed(2)
    teacher = teacher_of(target, (*TAPS, FINAL))
    recipe = Eagle3Recipe(teacher, common_tokens(recording, 96), TAPS, steps=2)
    fit(recipe, recording, Plan(passes=0.5, rows=8), tmp_path)
    recipe.load_state_dict({n: w.half().float() for n, w in recipe.state_dict().items()})
    head = load_eagle3(open_head(str(tmp_path), target.model, 64, "eagle3"))
    served = head.vocabulary
    assert served is not None
    assert served.tolist() == common_tokens(recording, 96).tolist()
    batch = recording.batch(recording.train[:1])
    assert batch.states is not None
    states = head.enter(batch.states[0, :, : len(TAPS) * 32])
    cache, first = head.make_cache(1, 64), batch.begin
    tokens = batch.ids[0, 1 : first + 1].tolist()
    _, fed = head.forward(tokens, states[:first], [Span(0, 0, first)], cache, [first - 1])
    logits, _ = head.forward([int(batch.ids[0, first + 1])], fed, [Span(0, first, 1)], cache, [0])
    trained = recipe.scores(recipe.rows(batch)[1][0][:, 0])
    # Training multiplies in bfloat16.
    assert torch.nn.functional.cosine_similarity(trained, logits).item() > 0.999


def test_answers_come_back_as_they_were_kept(tmp_path: Path) -> None:
    kept = [Answer([1, 2, 3, 4], 2), Answer([9, 8, 7], 1)]
    save_answers(tmp_path, kept, {})
    assert load_answers(tmp_path) == kept
    batch = Recording(tmp_path).batch([0, 1])
    assert batch.ids.tolist() == [[1, 2, 3, 4], [0, 9, 8, 7]]
    assert (batch.begin, batch.anchors) == (2, 1)
    assert batch.labels.tolist() == [[4], [7]]
    assert batch.real.tolist() == [[True] * 4, [False, True, True, True]]


def test_the_draft_vocabulary_is_what_answers_use(recording: Recording) -> None:
    everything = common_tokens(recording, 10_000)
    assert covered(recording, everything) == 1.0
    few = common_tokens(recording, 5)
    assert len(few) == 5
    assert few.tolist() == sorted(few.tolist())
    assert 0 < covered(recording, few) < 1
