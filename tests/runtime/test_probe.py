"""Planted faults of a trained head: the alarm speaks, the probe names the cause; weak but sound ones are let alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.bench.workloads import choose, read_workload
from specctl.planning.alarm import broken_draft
from specctl.runtime import EngineOptions, Request, SamplingParams, make_engine
from specctl.runtime.probing.probe import probe
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle, Eagle3
from tests.runtime.plant import (
    CROSSED,
    DRAFT,
    EAGLE,
    EAGLE3,
    FUSION,
    Edit,
    copy,
    demo,
    ids_for_offsets,
    noisy,
    overflowed,
    prompts,
    stranger,
    tapped,
)


def alarm_about(setting: SpecDecodeConfig, max_tokens: int = 32) -> bool:
    engine = make_engine(demo(), setting, EngineOptions(12))
    for number, prompt in enumerate(prompts()):
        engine.add(Request(str(number), list(prompt), SamplingParams(max_tokens=max_tokens)))
    while engine.has_work():
        engine.step()
    assert engine.stats.num_drafts >= 55  # the fewest that an alarm needs
    first = engine.stats.accepted_per_position[0]
    return broken_draft(setting.method.name, engine.stats.num_drafts, first) is not None


def test_input_order_swapped_is_found_and_undone(tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle(), 3, model=copy(tmp_path / "head", EAGLE, FUSION))
    found = probe(demo(), setting, prompts()[:8], max_tokens=20)
    assert found.restored is not None
    assert found.restored.cause == "input order"
    assert (found.restored.first or 0) > 4 * (found.rows[0].first or 0)
    assert found.as_dict()["cause"] == "input order"
    assert "fc.weight (token, hidden state) exchanged. Cause: input order; exchange the column" in found.text


def test_the_head_of_another_target_raises_the_alarm_and_nothing_restores_it(tmp_path: Path) -> None:
    setting = SpecDecodeConfig(Eagle(), 3, model=copy(tmp_path / "head", EAGLE, stranger))
    found = probe(demo(), setting, prompts()[:8], max_tokens=28)
    assert found.alarm is not None
    assert found.broken
    assert found.restored is None
    assert "What is left: wrong target" in found.text


def test_prompts_without_the_chat_template_are_told_by_the_probe() -> None:
    plain = [
        demo().encode(message["content"]) for p in choose(read_workload(), None, 12).prompts for message in p.messages
    ]
    setting = SpecDecodeConfig(Eagle(), 3, model=EAGLE)
    found = probe(demo(), setting, plain[:8], ("with the chat template", prompts()[:8]), max_tokens=24)
    assert found.restored is not None
    assert found.restored.cause == "chat template"


@pytest.mark.parametrize(
    ("edit", "keys", "cause", "change", "broken"),
    [
        (ids_for_offsets, {}, "tokenizer", "d2t read as token ids, not as offsets", True),
        (CROSSED, {}, "input order", "the halves of the first layer (token, hidden state) exchanged", False),
        (dict, {"norm_before_residual": True}, "norm flags", "norm_before_residual: false", False),
        (dict, tapped([3, 6, 9]), "tap layers", "the states after layers [", True),
    ],
)
def test_faults_of_an_eagle3_head_are_named(
    edit: Edit, keys: dict[str, object], cause: str, change: str, broken: bool, tmp_path: Path
) -> None:
    setting = SpecDecodeConfig(Eagle3(), 2, model=copy(tmp_path / "head", EAGLE3, edit, **keys))
    found = probe(demo(), setting, prompts()[:8], max_tokens=20)
    assert found.restored is not None
    assert found.restored.cause == cause
    assert found.restored.change.startswith(change)
    assert found.broken == broken  # the loader refuses ids that mean two things; the others accept a little


def test_a_sound_head_is_left_alone() -> None:
    found = probe(demo(), SpecDecodeConfig(Eagle(), 3, model=EAGLE), prompts()[:8], max_tokens=20)
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
WEAK += [("eagle", share) for share in (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.33, 0.36, 0.4)]


@pytest.mark.parametrize(("kind", "share"), WEAK)
def test_weak_but_sound_drafts_raise_no_alarm(kind: str, share: float, tmp_path: Path) -> None:
    source, method = (DRAFT, DraftModel()) if kind == "draft" else (EAGLE, Eagle())
    setting = SpecDecodeConfig(method, 2, model=copy(tmp_path / "draft", source, noisy(share)))
    assert not alarm_about(setting, 12)
