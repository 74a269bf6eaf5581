"""Every preset can be planned, or says why not."""

from __future__ import annotations

import json

import pytest

from specctl.cli.main import run
from specctl.resources import preset_names

# The sizes of these targets or drafts are in no public file, or are told by nobody at all.
UNSIZED = {
    "gemma-4-26b-a4b-assistant",
    "gemma-4-e2b-assistant",
    "gemma-4-e4b-assistant",
    "llama-4-maverick-eagle3",
    "minimax-m3-eagle3.1",
    "mistral-small-4-119b-eagle",
    "qwen3-30b-a3b-dflash",
}


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_planned(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--gpu", "gb200", "--tp", "32" if "2.4t" in name else "1" if name.startswith("demo") else "8"]
    target = ["meta-llama/Llama-3.1-8B-Instruct"] if name.startswith("coding") else []
    argv = ["plan", *target, "--spec", name, *where, "--context", "1024", "--concurrency", "1,32", "--format", "json"]
    status = run(argv)
    said = capsys.readouterr()
    if name in UNSIZED:
        assert status == 3
        assert "not published" in said.err or "cannot be planned" in said.err
        return
    assert status == 0, said.err
    data = json.loads(said.out)
    assert data["memory"]["conversations"] >= data["memory"]["conversations_with_draft"] > 0
    assert [row["concurrency"] for row in data["curve"]] == [1, 32]


def test_a_preset_is_a_target_and_brings_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "llama-3.1-8b-eagle3", "--gpu", "h100", "--format", "json"]) == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert inputs["target"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert inputs["k"] == 3
    assert inputs["acceptance"]["source"].startswith("published: mean over HumanEval, GSM8K, CNN/DailyMail")
    assert inputs["acceptance"]["lengths"] == {"3": 2.783, "7": 3.57}
