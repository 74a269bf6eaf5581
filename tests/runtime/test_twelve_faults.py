"""Twelve faults planted into the bundled, trained drafts, each with the answer that it must get.

Answers: `refused` (the draft is not loaded), `told` (a note when it is loaded), `named` (the check at load warns with
cause and cure), `alarm` (acceptance as by chance), `stale` (the check of the cache). `test_planted_faults` plants the
same into tiny heads of other layouts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.planning.alarm import broken_draft
from specctl.resources import bundled_dir
from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.runtime.integrity import cache_faults
from specctl.runtime.request import Request, SamplingParams
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS
from tests.runtime import plant
from tests.runtime.plant import copy, demo, prompts

CHECKED = EngineOptions(12, 256, draft_check=True, check_cache=True)


def spec_of(method: str, model: str, k: int = 3) -> SpecDecodeConfig:
    return SpecDecodeConfig(METHODS[method](), k, model=model)


def answer(method: str, model: str, k: int = 3, target: Target | None = None) -> str:
    """What a user is told about the pair before anything runs."""
    try:
        engine = make_engine(target or demo(), spec_of(method, model, k), CHECKED)
    except SpecctlError as refused:
        return f"refused: {refused.message}"
    kinds = {True: "named", False: "told"}
    return "\n".join(f"{kinds[note.startswith('WARNING')]}: {note}" for note in engine.notes)


def finish(engine: Engine, max_tokens: int = 24) -> None:
    for number, prompt in enumerate(prompts()):
        engine.add(Request(str(number), list(prompt), SamplingParams(max_tokens=max_tokens, ignore_eos=True)))
    while engine.has_work():
        engine.step()


def alarm(method: str, model: str) -> str:
    """What a run says about its acceptance."""
    engine = make_engine(demo(), spec_of(method, model), replace(CHECKED, draft_check=False))
    finish(engine)
    found = broken_draft(method, engine.stats.num_drafts, engine.stats.accepted_per_position[0])
    return f"alarm: {found.text}" if found else "no alarm"


def another_order(place: Path) -> str:
    """A draft whose tokenizer, and with it the embedding, gives two tokens each other's id."""
    tokenizer = place / "tokenizer.json"

    def edit(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        rows = tensors["model.embed_tokens.weight"]
        rows[[300, 400]] = rows[[400, 300]]
        return tensors

    copy(place, plant.DRAFT, edit)
    found = json.loads(tokenizer.read_text("utf-8"))
    vocab = found["model"]["vocab"]
    texts = {number: text for text, number in vocab.items()}
    vocab[texts[300]], vocab[texts[400]] = 400, 300
    tokenizer.write_text(json.dumps(found), "utf-8")
    return str(place)


def without_template(place: Path) -> Target:
    shutil.copytree(bundled_dir() / "demo", place)
    (place / "chat_template.jinja").unlink(missing_ok=True)
    path = place / "tokenizer_config.json"
    config = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({key: value for key, value in config.items() if key != "chat_template"}), "utf-8")
    return load_target(str(place), device="cpu", dtype="float32")


def stale(model: str) -> str:
    """A head that leaves out a row when it catches up."""
    engine = make_engine(demo(), spec_of("eagle3", model), replace(CHECKED, draft_check=False))
    proposer: Any = engine.proposer
    observe = proposer.observe

    def skipping(sequence: Any, hidden: Any = None) -> None:
        observe(sequence, hidden)
        waiting = torch.cat(proposer._waiting[sequence.slot])
        if 1 < len(waiting) < 4:
            proposer._waiting[sequence.slot] = [waiting[1:]]
            proposer._computed[sequence.slot] += 1

    proposer.observe = skipping
    finish(engine)
    return f"stale: {cache_faults(engine)[0]}"


Fault = Callable[[Path], str]
TWELVE: dict[str, tuple[Fault, str]] = {
    "tap layers shifted": (
        lambda place: answer("eagle3", copy(place, plant.EAGLE3, **plant.tapped([3, 6, 11]))),
        "refused: {place}/config.json: eagle_aux_hidden_state_layer_ids [3, 6, 11] may count layers passed",
    ),
    "hidden/embedding order swapped": (
        lambda place: answer("eagle3", copy(place, plant.EAGLE3, plant.CROSSED)),
        "named: WARNING: the eagle3 draft {place} looks misread: ",
    ),
    "d2t read as ids": (
        lambda place: answer("eagle3", copy(place, plant.EAGLE3, plant.ids_for_offsets)),
        "refused: {place}: tensor 'd2t' holds token ids, where offsets (id minus row) are meant",
    ),
    "head of another target": (
        lambda place: alarm("eagle", copy(place, plant.EAGLE, plant.stranger)),
        "alarm: eagle looks broken: of ",
    ),
    "draft in another vocabulary order": (
        lambda place: answer("draft_model", another_order(place)),
        "refused: draft '{place}' has another vocabulary than target 'demo': ",
    ),
    "embedding missing": (
        lambda place: answer("draft_model", copy(place, plant.DRAFT, plant.without("model.embed_tokens.weight"))),
        "refused: the checkpoint {place} has no tensor 'model.embed_tokens.weight'",
    ),
    "norm_before_residual flipped": (
        lambda place: answer("eagle3", copy(place, plant.EAGLE3, norm_before_residual=True)),
        'Cause: norm flags; set "norm_before_residual": false in {place}/config.json',
    ),
    "wrong rope theta": (
        lambda place: answer("eagle", copy(place, plant.EAGLE, rope_theta=1e6)),
        "told: rope theta: 1e+06; the target has 10000",
    ),
    "missing chat template": (
        lambda place: answer("eagle", plant.EAGLE, target=without_template(place)),
        "told: chat template: the target has none: a draft trained on conversations will accept little",
    ),
    "fp16 overflow": (
        lambda place: answer("eagle", copy(place, plant.EAGLE, plant.overflowed)),
        "of tensor 'fc.weight' are not finite numbers",
    ),
    "k beyond the training depth": (
        lambda place: answer("mtp", plant.MTP, k=4),
        "told: draft length: 4 tokens a step are drafted, but the checkpoint has 1 prediction layer",
    ),
    "stale KV rows": (lambda place: stale(plant.EAGLE3), "stale: stale row in the draft's cache: row "),
}


@pytest.mark.parametrize("name", TWELVE)
def test_each_planted_fault_gets_its_answer(name: str, tmp_path: Path) -> None:
    fault, wanted = TWELVE[name]
    place = tmp_path / "planted"
    assert wanted.format(place=place) in fault(place)


def test_without_a_fault_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert answer("eagle3", copy(tmp_path / "head", plant.EAGLE3)) == ""
    assert alarm("eagle3", plant.EAGLE3) == "no alarm"


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 4, 9], ""),  # the same layers by the layer whose output is read: no fault
        ([3, 6, 9], "refused: "),
        ([0, 3, 8], "refused: "),
        ([5, 10, 2], "named: "),
    ],
)
def test_other_ids_of_tap_layers(ids: list[int], said: str, tmp_path: Path) -> None:
    found = answer("eagle3", copy(tmp_path / "head", plant.EAGLE3, **plant.tapped(ids)))
    assert found.startswith(said)
    assert bool(found) == bool(said)
