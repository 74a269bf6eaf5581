"""`specctl inspect` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specctl.cli.main import run
from specctl.resources import bundled_model


def test_a_bundled_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "demo"]) == 0
    out = capsys.readouterr().out
    assert "demo: a language model; methods: ngram, suffix, draft_model" in out
    assert "layers 10, hidden size 256" in out


def test_a_pair_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "demo", "--draft", "demo-draft", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format_version"] == 1
    assert found["fits"] == "yes"
    assert found["target"]["vocab_size"] == found["draft"]["vocab_size"] == 2048
    assert {check["status"] for check in found["checks"]} == {"ok"}


def test_a_draft_that_does_not_fit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = json.loads((Path(str(bundled_model("demo-draft"))) / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": 99}), "utf-8")
    assert run(["inspect", "demo", "--draft", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "FAIL  vocabulary  the target has 2048 rows, the draft 99" in out
    assert "does not fit demo" in out


def test_the_path_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "demo", "--path"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "config.json").is_file()


@pytest.mark.parametrize(
    ("words", "status", "wanted"),
    [
        (["inspect", "demoo"], 3, "did you mean demo?"),
        (["inspect", "demo", "--draft", "./nothing"], 3, "was not found"),
        (["inspect", "demo", "--format", "xml"], 2, "unknown format 'xml'"),
        (["inspect"], 2, "MODEL"),
    ],
)
def test_wrong_usage(words: list[str], status: int, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == status
    assert wanted in capsys.readouterr().err


@pytest.mark.parametrize(("text", "status"), [(None, 1), ("{", 3), ("[]", 3)])
def test_folders_that_are_no_checkpoint(
    text: str | None, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text, "utf-8")
    assert run(["inspect", str(tmp_path)]) == status
    assert "config.json" in capsys.readouterr().err


def test_a_probe_measures_and_answers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(json.dumps({"prompt": "Write a story about a cat."}) + "\n", "utf-8")
    words = ["inspect", "demo", "--draft", "demo-medusa", "--probe", "--prompts", str(file)]
    assert run([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["probe"]
    causes = ["as it is", "chat template", "head order", "head order", "hidden state"]
    assert [row["cause"] for row in found["rows"]] == causes
    assert found["rows"][0]["num_drafts"] > 5
    assert found["alarm"] is None
    assert run(["inspect", "demo-draft", "--draft", "demo-eagle", "--probe", "--prompts", str(file)]) == 1
    assert "answer: the draft cannot be loaded (" in capsys.readouterr().out
    assert run(["inspect", "demo", "--probe"]) == 2
    assert run([*words[:-1], str(tmp_path / "none.jsonl")]) == 3
