"""The command that trains an EAGLE-3 head for any small target, from its prompts to the card."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from specctl.errors import SpecctlError
from specctl.modelinfo.describe import method_of
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.read import read_facts
from specctl.runtime import load_target
from train.corpus.build import runs
from train.eagle3 import file_prompts, main, taps_of
from train.heads.recipe import teacher_of
from train.own_prompts import bench_runs, turn
from train.own_prompts import main as write_prompts


def test_a_head_for_another_target_comes_with_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "prompts.jsonl"
    rows = [{"messages": [{"role": "user", "content": f"Add {i} and {i + 3}."}]} for i in range(12)]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = tmp_path / "head"
    options = f"--prompts {asked} --count 12 --output-len 12 --draft-vocabulary 64 --steps 2 --passes 1 --rows 4"
    monkeypatch.setattr(
        sys,
        "argv",
        ["eagle3", "demo", "--out", str(out), *options.split(), "--held-out", "1", "--held-out-set", "demo"],
    )
    main()
    facts = read_facts(str(out))
    assert isinstance(facts, ModelFacts)
    assert method_of(facts) == "eagle3"
    assert facts.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 5, 10]
    found = json.loads((out / "evaluation.json").read_text("utf-8"))
    assert found["outputs_identical_to_plain"] == found["prompts"] == 4
    card = (out / "README.md").read_text("utf-8")
    assert "answered 12 prompts of `prompts.jsonl`" in card
    assert "train/corpus" not in card
    assert "train.eagle3 demo --out head --prompts prompts.jsonl --count 12" in card
    for category in ("coding", "math", "summarization", "writing"):
        assert f"| {category} |" in card
    assert json.loads((out / "training.json").read_text("utf-8"))["steps"] == 3


def test_taps_are_a_low_a_middle_and_the_last_layer() -> None:
    assert taps_of(30) == (2, 15, 30)
    assert taps_of(3) == (2, 2, 3)


def test_the_last_layer_is_known_from_the_final_state() -> None:
    """Recorded or worked out, its direction is the same."""
    from specctl.runtime.kv_cache import Span
    from specctl.runtime.models.hidden import FINAL
    from train.heads.batches import Batch

    target = load_target("demo", device="cpu", dtype="float32")
    ids = [1, 5, 90, 17, 4, 300]
    cache = target.model.make_cache(1, 8)
    _, states = target.model.forward_tapped(ids, [Span(0, 0, 6)], cache, [5], (10, FINAL))
    states = states.clone().unsqueeze(0)
    whole = Batch(torch.tensor([ids]), torch.ones(1, 6, dtype=torch.bool), states, 2)
    part = Batch(whole.ids, whole.real, states[..., 256:], 2)
    (recorded,) = teacher_of(target, (10, FINAL)).directions(whole, (10,))
    (worked_out,) = teacher_of(target, (FINAL,)).directions(part, (10,))
    assert torch.allclose(recorded, worked_out, atol=1e-4)


def test_a_prompt_file_is_read_line_by_line(tmp_path: Path) -> None:
    target = load_target("demo", device="cpu", dtype="float32")
    file = tmp_path / "p.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n{"prompt": "Hi"}\n', "utf-8")
    prompts = file_prompts(target, file, 64)
    assert next(prompts) == target.encode_chat([{"role": "user", "content": "Hi"}])
    with pytest.raises(SpecctlError, match="line 2"):
        next(prompts)


def test_a_model_writes_prompts_in_the_users_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "prompts.jsonl"
    monkeypatch.setattr(sys, "argv", ["own_prompts", "demo", "--out", str(out), "--corpus", "3", "--count", "4"])
    write_prompts()
    target = load_target("demo", device="cpu", dtype="float32")
    before, behind = turn(target)
    rows = [json.loads(line)["messages"] for line in out.read_text("utf-8").splitlines()]
    assert len(rows) >= 3
    for messages in rows:
        assert bench_runs(target).isdisjoint(runs(target.tokenizer(messages[-1]["content"])["input_ids"]))
    assert target.decode(target.encode_chat([{"role": "user", "content": "Hi"}]), skip_special_tokens=False).startswith(
        f"{before}Hi{behind}"
    )
