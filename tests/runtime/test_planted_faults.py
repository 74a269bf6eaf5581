"""Faults that are planted into drafts, each with the answer it must get: a refusal or a warning at load that names the
cause. Those that only acceptance shows (input order, another target, chat template) are in `test_probe`, drafts in
another vocabulary order in `test_vocabulary`, stale rows in `test_integrity`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from specctl.errors import SpecctlError
from specctl.runtime import Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel
from tests.runtime.eagle_heads import eagle3
from tests.runtime.head_kit import make_head
from tests.runtime.kit import OPTIONS


def notes_of(target: Target, kind: str, folder: Path, k: int = 3, **keys: Any) -> tuple[str, ...]:
    """What loading a made head says, with other keys in its config."""
    made = make_head(kind, target, folder)
    change(made.folder, **keys)
    return make_engine(target, SpecDecodeConfig(made.method, k, model=str(made.folder)), OPTIONS).notes


def change(folder: Path, **keys: Any) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | keys), "utf-8")


def refusal(target: Target, made: Any) -> str:
    with pytest.raises(SpecctlError) as refused:
        make_engine(target, SpecDecodeConfig(made.method, 3, model=str(made.folder)), OPTIONS)
    return f"{refused.value.message} ({refused.value.help})"


def test_tap_layers_that_may_be_shifted_are_refused(exact: Callable[..., Target], tmp_path: Path) -> None:
    made = eagle3(exact(), tmp_path / "head", taps=(0, 1, 2), stated=[0, 1, 2])
    assert "may count layers passed or name the layers whose output is meant, one less" in refusal(exact(), made)
    made = eagle3(exact(), tmp_path / "far", taps=(0, 1, 3), stated=[2, 3, 4])
    assert "taps the hidden state after layer 4; the target has 3 layers" in refusal(exact(), made)


@pytest.mark.parametrize("with_mask", [True, False])
def test_a_vocabulary_map_of_ids_is_refused(with_mask: bool, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = make_head("eagle3", exact(), tmp_path / "head")
    file = made.folder / "model.safetensors"
    tensors = load_file(file)
    tensors["d2t"] = tensors["d2t"] + torch.arange(len(tensors["d2t"]))
    if not with_mask:
        del tensors["t2d"]
    save_file(tensors, file)
    assert "tensor 'd2t' holds token ids, where offsets (id minus row) are meant" in refusal(exact(), made)


@pytest.mark.parametrize("kind", ["eagle", "eagle3"])
def test_a_head_of_a_target_of_another_width_is_refused(
    kind: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    file = made.folder / "model.safetensors"
    tensors = load_file(file)
    tensors["fc.weight"] = torch.zeros(32, len(tensors["fc.weight"][0]) * 2)
    save_file(tensors, file)
    assert "tensor 'fc.weight' is [32, " in refusal(exact(), made)


def test_a_narrower_head_without_an_embedding_is_refused(exact: Callable[..., Target], tmp_path: Path) -> None:
    made = make_head("eagle3", exact(), tmp_path / "head")
    change(made.folder, hidden_size=16)
    file = made.folder / "model.safetensors"
    tensors = {name: t[:, :16] if name == "lm_head.weight" else t for name, t in load_file(file).items()}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file)
    assert refusal(exact(), made)


def test_another_rope_theta_is_told_at_load(exact: Callable[..., Target], tmp_path: Path) -> None:
    notes = notes_of(exact(), "eagle3", tmp_path / "head", rope_theta=1e6)
    assert "rope theta: 1e+06; the target has 10000" in notes


def test_a_target_without_a_chat_template_is_told_at_load(exact: Callable[..., Target], tmp_path: Path) -> None:
    notes = notes_of(exact(), "eagle", tmp_path / "head")
    assert any(note.startswith("chat template: the target has none") for note in notes)


def test_numbers_that_overflow_are_refused_or_told(
    exact: Callable[..., Target], checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    made = make_head("eagle", exact(), tmp_path / "head")
    file = made.folder / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {"fc.weight": tensors["fc.weight"] * 1e6}, file)
    half = load_target(str(checkpoint()), device="cpu", dtype="float16")
    assert "of tensor 'fc.weight' are not finite numbers" in refusal(half, made)
    notes = notes_of(exact(), "eagle", tmp_path / "other", torch_dtype="float16")
    assert "dtype: the draft is float16, the target float32: float16 may overflow" in notes


@pytest.mark.parametrize(("kind", "depth"), [("eagle3-speculators", 4), ("mtp-deepseek_v3", 1)])
def test_more_tokens_than_trained_for_are_told_at_load(
    kind: str, depth: int, exact: Callable[..., Target], tmp_path: Path
) -> None:
    within = notes_of(exact(), kind, tmp_path / "head", k=depth)
    beyond = notes_of(exact(), kind, tmp_path / "other", k=depth + 1)
    assert not any(note.startswith("draft length") for note in within)
    assert any(f"expect few accepted tokens beyond {depth}" in note for note in beyond)


def test_a_draft_model_of_its_own_kind_has_nothing_odd(
    exact: Callable[..., Target], relative: Callable[..., Path]
) -> None:
    notes = make_engine(exact(), SpecDecodeConfig(DraftModel(), 3, model=str(relative())), OPTIONS).notes
    assert all(note.startswith("chat template") for note in notes)
