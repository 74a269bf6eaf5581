"""Planted faults of a trained head: the alarm speaks, the probe names the cause; weak but sound ones are let alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.bench.workloads import choose, read_workload, tokens_of
from specctl.planning.alarm import broken_draft
from specctl.resources import bundled_model
from specctl.runtime import Target, load_target
from specctl.runtime.probe import AS_IT_IS, measure, probe
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle, Eagle3

Edit = Callable[[dict[str, Tensor]], dict[str, Tensor]]
EAGLE = str(bundled_model("demo-eagle"))
EAGLE3 = str(bundled_model("demo-eagle3"))
DRAFT = str(bundled_model("demo-draft"))


@cache
def demo() -> Target:
    return load_target("demo", device="cpu", dtype="float32")


@cache
def prompts() -> tuple[list[int], ...]:
    return tuple(tokens_of(prompt, demo()) for prompt in choose(read_workload(), None, 12).prompts)


def copy(place: Path, source: str, edit: Edit = dict, **keys: object) -> str:
    """The checkpoint ``source`` with other tensors or keys."""
    shutil.copytree(source, place)
    config = json.loads((place / "config.json").read_text("utf-8"))
    (place / "config.json").write_text(json.dumps(config | keys), "utf-8")
    tensors = edit(load_file(place / "model.safetensors"))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, place / "model.safetensors")
    return str(place)


def swapped(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return tensors | {"fc.weight": torch.cat(tensors["fc.weight"].chunk(2, dim=1)[::-1], dim=1)}


def stranger(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """What a head of another target is to this one: states in another basis."""
    order = torch.randperm(256, generator=torch.Generator().manual_seed(1))
    token, state = tensors["fc.weight"].chunk(2, dim=1)
    return tensors | {"fc.weight": torch.cat([token, state[:, order]], dim=1)}


def overflowed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return tensors | {"fc.weight": (tensors["fc.weight"].float() * 1e6).half()}


def noisy(share: float) -> Edit:
    def edit(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        dice = torch.Generator().manual_seed(5)
        return {
            name: (t.float() + torch.randn(t.shape, generator=dice) * share * t.float().std()).to(t.dtype)
            for name, t in tensors.items()
        }

    return edit


def alarm_about(setting: SpecDecodeConfig, max_tokens: int = 32) -> bool:
    row = measure(AS_IT_IS, "", demo(), setting, prompts(), max_tokens)
    assert row.error is None
    assert row.drafts >= 55  # the fewest that an alarm needs
    return broken_draft(setting.method.name, row.drafts, row.accepted[0]) is not None


def test_input_order_swapped_is_found_and_undone(tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle(), 3, model=copy(tmp_path / "head", EAGLE, swapped))
    found = probe(demo(), setting, prompts(), max_tokens=32)
    assert found.restored is not None
    assert found.restored.cause == "input order"
    assert (found.restored.first or 0) > 4 * (found.rows[0].first or 0)
    assert found.as_dict()["cause"] == "input order"
    assert "fc.weight (token, hidden state) exchanged. Cause: input order" in found.text


def test_the_head_of_another_target_raises_the_alarm_and_nothing_restores_it(tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle(), 3, model=copy(tmp_path / "head", EAGLE, stranger))
    found = probe(demo(), setting, prompts(), max_tokens=48)
    assert found.alarm is not None
    assert found.broken
    assert found.restored is None
    assert "What is left: wrong target" in found.text


def test_prompts_without_the_chat_template_are_told_by_the_probe() -> None:
    plain = [
        demo().encode(message["content"]) for p in choose(read_workload(), None, 12).prompts for message in p.messages
    ]
    setting = SpecDecodeConfig(Eagle(), 3, model=EAGLE)
    found = probe(demo(), setting, plain, ("with the chat template", prompts()), max_tokens=32)
    assert found.restored is not None
    assert found.restored.cause == "chat template"


def ids_for_offsets(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return tensors | {"d2t": tensors["d2t"] + torch.arange(len(tensors["d2t"]))}


def crossed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    names = [f"midlayer.self_attn.{part}_proj.weight" for part in "qkv"]
    return tensors | {name: torch.cat(tensors[name].chunk(2, dim=1)[::-1], dim=1) for name in names}


@pytest.mark.parametrize(
    ("edit", "cause", "change"),
    [
        (ids_for_offsets, "tokenizer", "d2t read as token ids, not as offsets"),
        (crossed, "input order", "the halves of the first layer (token, hidden state) exchanged"),
    ],
)
def test_faults_of_an_eagle3_head_are_named(edit: Edit, cause: str, change: str, tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle3(), 1, model=copy(tmp_path / "head", EAGLE3, edit))
    found = probe(demo(), setting, prompts()[:8], max_tokens=24)
    assert found.restored is not None
    assert (found.restored.cause, found.restored.change) == (cause, change)
    assert found.broken == (cause == "tokenizer")  # the loader refuses ids; the other one accepts a little


def test_a_sound_head_is_left_alone() -> None:
    found = probe(demo(), SpecDecodeConfig(Eagle(), 3, model=EAGLE), prompts(), max_tokens=24)
    assert found.alarm is None
    assert not found.broken
    assert found.restored is None
    assert "no change makes it better" in found.text


def test_a_head_that_cannot_be_loaded_is_part_of_the_answer(tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle(), 3, model=copy(tmp_path / "head", EAGLE, overflowed))
    found = probe(demo(), setting, prompts()[:2], max_tokens=8)
    assert "are not finite numbers" in (found.rows[0].error or "")
    assert found.broken
    assert "cannot be loaded (" in found.text


WEAK = [("draft", share) for share in (0.0, 0.2, 0.3, 0.35, 0.4, 0.42, 0.44, 0.46, 0.48, 0.5)]
WEAK += [("eagle", share) for share in (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)]


@pytest.mark.parametrize(("kind", "share"), WEAK)
def test_weak_but_sound_drafts_raise_no_alarm(kind: str, share: float, tmp_path: Path) -> None:
    source, method = (DRAFT, DraftModel()) if kind == "draft" else (EAGLE, Eagle())
    setting = SpecDecodeConfig(method, 2, model=copy(tmp_path / "draft", source, noisy(share)))
    assert not alarm_about(setting, 12)
