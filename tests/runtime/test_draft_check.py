"""The check at load names what restores a draft that is misread, and leaves sound, weak and untrained ones alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from specctl.runtime import EngineOptions, Target, load_target, make_engine
from specctl.runtime.probing import check
from specctl.runtime.probing.compare import gain, sign_test
from specctl.runtime.probing.follow import Marks
from specctl.runtime.probing.lesson import Lesson, bundled_texts
from specctl.runtime.probing.trial import Trial, variants_of
from specctl.runtime.request import Request, SamplingParams
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS
from tests.runtime.family_kit import write_family
from tests.runtime.family_methods import setting
from tests.runtime.head_kit import MADE, make_head
from tests.runtime.kit import OPTIONS, run
from tests.runtime.plant import (
    CROSSED,
    DFLASH,
    DRAFT,
    EAGLE,
    EAGLE3,
    FUSION,
    MEDUSA,
    MLP,
    MTP,
    MTP_FUSION,
    PARD,
    Edit,
    copy,
    demo,
    noisy,
    prompts,
    tapped,
    turned,
    untrained,
)

CHECKED = EngineOptions(4, 256, draft_check=True)


def warnings(method: str, model: str, target: Target | None = None, k: int = 3) -> list[str]:
    """What the check says when the pair is loaded."""
    spec = SpecDecodeConfig(METHODS[method](), k, model=model)
    notes = make_engine(target or demo(), spec, CHECKED).notes
    assert not any("draft check left out" in note for note in notes), notes
    return [note for note in notes if note.startswith("WARNING")]


# method, checkpoint, other tensors, other keys; the cause and the cure that must be named.
MISREAD: list[tuple[str, str, Edit, dict[str, Any], str, str]] = [
    ("eagle3", EAGLE3, dict, {"norm_before_residual": True}, "norm flags", 'set "norm_before_residual": false in '),
    ("eagle3", EAGLE3, CROSSED, {}, "input order", "midlayer.self_attn.q_proj.weight"),
    ("eagle3", EAGLE3, dict, tapped([5, 10, 2]), "tap layers", "[2, 5, 10] in "),
    ("eagle", EAGLE, FUSION, {}, "input order", "exchange the column halves of fc.weight"),
    ("mtp", MTP, MTP_FUSION, {}, "input order", "model.mtp_layers.0.input_proj.weight"),
    ("medusa", MEDUSA, turned, {}, "head order", "number the heads 4, 3, 2, 1, 0 from 0 on"),
    ("dflash", DFLASH, dict, {"rope_theta": 1e6}, "rope", 'set "rope_theta": 10000 in '),
    ("pard", PARD, dict, {"pard_token": 7}, "mask token", 'set "pard_token": 0 in '),
    ("draft_model", DRAFT, dict, {"rope_theta": 1e6}, "rope", '"rope_theta": 10000.0'),
]


@pytest.mark.parametrize(("method", "source", "edit", "keys", "cause", "cure"), MISREAD)
def test_a_misread_draft_is_named_with_cause_and_cure(
    method: str, source: str, edit: Edit, keys: dict[str, Any], cause: str, cure: str, tmp_path: Path
) -> None:
    (found,) = warnings(method, copy(tmp_path / "head", source, edit, **keys))
    assert f"Cause: {cause}; " in found
    assert cure in found
    assert "are the target's own, and" in found


SOUND = [
    ("eagle3", EAGLE3), ("eagle", EAGLE), ("mtp", MTP), ("medusa", MEDUSA), ("mlp_speculator", MLP),
    ("dflash", DFLASH), ("pard", PARD), ("draft_model", DRAFT),
]  # fmt: skip


@pytest.mark.parametrize(("method", "source"), SOUND)
def test_the_bundled_drafts_are_sound(method: str, source: str) -> None:
    assert warnings(method, source) == []


WEAK: list[tuple[str, str, Edit]] = [
    *(("eagle3", EAGLE3, noisy(share, 7)) for share in (0.2, 0.4, 0.6, 0.8, 1.0)),
    *(("mtp", MTP, noisy(share, 8)) for share in (0.2, 0.4, 0.6, 0.8, 1.0)),
    *(("eagle", EAGLE, noisy(share, 9)) for share in (0.4, 0.8)),
    *(("medusa", MEDUSA, noisy(share, 10)) for share in (0.5, 1.0)),
    *(("mlp_speculator", MLP, noisy(share, 11)) for share in (0.5, 1.0)),
    *((method, source, untrained) for method, source in SOUND[:4]),
]


@pytest.mark.parametrize(("method", "source", "edit"), WEAK, ids=str)
def test_weak_and_untrained_drafts_are_let_alone(method: str, source: str, edit: Edit, tmp_path: Path) -> None:
    assert len(WEAK) == 20
    assert warnings(method, copy(tmp_path / "head", source, edit)) == []


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "eagle3-speculators", "mtp-deepseek_v3", "medusa-file", "dflash"])
def test_tiny_heads_that_were_never_trained_are_let_alone(
    kind: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    assert kind in MADE
    made = make_head(kind, exact(), tmp_path / "head")
    assert warnings(made.method.name, str(made.folder), exact()) == []


# Experts, latent attention, and a recurrent state beside attention; with their own prediction layers, and with taps.
ADAPTED = [("mixtral", "eagle3"), ("deepseek_v3", "mtp"), ("qwen3_next", "mtp")]


@pytest.mark.parametrize(("family", "method"), ADAPTED)
def test_targets_through_the_adapter_are_checked_too(family: str, method: str, tmp_path: Path) -> None:
    target = load_target(str(write_family(family, tmp_path / family)), device="cpu", dtype="float64")
    spec = setting(method, target, tmp_path, 2)
    engine = make_engine(target, spec, EngineOptions(2, 64))
    with variants_of(target, spec, engine.proposer.hidden_layers if engine.proposer else None) as variants:
        trial = Trial(target, spec, Lesson(target, bundled_texts(target)), 2)
        tried = [trial.marks(variant) for variant in (None, *variants)]
    assert len(tried) > 2
    assert all(marks is not None and marks.places > 100 for marks in tried)
    assert check.draft_check(engine, spec) == ()  # never trained


def test_the_check_changes_no_output_and_keeps_nothing() -> None:
    spec = SpecDecodeConfig(METHODS["eagle3"](), 3, model=EAGLE3)
    asked = [Request(f"{n}", prompt, SamplingParams(max_tokens=12)) for n, prompt in enumerate(prompts()[:2])]
    found = [run(make_engine(demo(), spec, replace(CHECKED, draft_check=on)), asked) for on in (True, False)]
    assert found[0]["0"]["tokens"] == found[1]["0"]["tokens"]
    assert found[0]["1"]["stats"] == found[1]["1"]["stats"]


def test_a_fault_of_the_check_is_told_and_stops_nothing(
    exact: Callable[..., Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_head("eagle", exact(), tmp_path / "head")
    spec = SpecDecodeConfig(made.method, 2, model=str(made.folder))
    monkeypatch.setattr(check, "bundled_texts", lambda _: [][0])
    notes = make_engine(exact(), spec, replace(OPTIONS, draft_check=True)).notes
    assert any(note.startswith("draft check left out: IndexError") for note in notes)
    monkeypatch.setattr(check, "MAX_BYTES", 10)
    assert any("more than" in note for note in make_engine(exact(), spec, replace(OPTIONS, draft_check=True)).notes)


def marks(right: list[int], log: float, places: int = 200) -> Marks:
    """As many right tokens among ``places`` at each place of a draft, from the first on."""
    columns = [torch.arange(places) < count for count in right]
    return Marks(torch.stack(columns, dim=1), torch.full((places, len(right)), log) + torch.rand(places, 1) * 0.01)


def test_what_counts_as_clearly_better() -> None:
    torch.manual_seed(0)
    base = marks([80, 60], -2.0)
    assert sign_test(3, 0) == 0.125
    assert gain(base, marks([80, 60], -1.0), 0.05, 30) is None  # likelier, and not one token more
    assert gain(base, marks([84, 60], -1.0), 0.05, 30) is None  # four tokens of 200: chance could give them
    assert gain(base, marks([120, 60], -2.0), 0.05, 30) is None  # more, but no likelier
    found = gain(base, marks([120, 60], -1.0), 0.05, 30)
    assert found is not None
    assert (found.place, found.before, found.after) == (0, 0.4, 0.6)
    weak = marks([0, 0], -9.0)
    assert gain(weak, marks([30, 0], -5.0), 0.05, 30) is None  # better, and still no better than the alarm's bound
    assert gain(weak, marks([80, 0], -5.0), 0.5, 30) is None  # a constant would be as good
    assert gain(weak, marks([80, 0], -5.0), 0.05, 30) is not None
