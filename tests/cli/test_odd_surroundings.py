"""Odd files, odd streams and odd options: an answer and the right status, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specctl.cli.main import run

GOOD = "speculative_config:\n  decoding_type: NGram\n  max_draft_len: 4\n  max_matching_ngram_size: 3\n"
WRONG = GOOD.replace("4", "0")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(GOOD)


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`line` under bash, in which `$S` is specctl."""
    env = {**os.environ, "S": f"{sys.executable} -m specctl", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        ["bash", "-c", line], env={**env, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_folder_with_pipes_loose_links_and_manifests() -> None:
    Path("loose.yaml").symlink_to("nowhere")
    Path("self").symlink_to(".")
    os.mkfifo("pipe.yaml")
    Path("pod.yaml").write_text("apiVersion: v1\nkind: Pod\nx: --speculative-config\n---\napiVersion: v1\n")
    done = shell("$S validate-config . --format json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert [Path(one["source"]).name for one in data["results"]] == ["good.yaml"]
    assert data["skipped_files"] == 1


def test_streams_that_are_closed_or_full() -> None:
    closed = shell("$S validate-config good.yaml >&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    full = shell("$S validate-config good.yaml >/dev/full")
    assert full.returncode == 3
    assert full.stderr.strip() == "error: the output cannot be written: No space left on device"
    piped = shell("$S validate-config good.yaml | true")
    assert piped.stderr == ""


def test_characters_that_the_terminal_lacks() -> None:
    setting = """$S validate-config -sc '{"m\u00e9thod": "ngram"}'"""
    text = shell(setting, PYTHONIOENCODING="ascii")
    assert "m\\xe9thod" in text.stdout
    assert text.stderr == ""
    done = shell(f"{setting} --format json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["valid"] is False


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_a_file_whose_name_is_no_text(form: str) -> None:
    Path(os.fsdecode(b"\xff.yaml")).write_text(WRONG)
    done = shell(f"$S validate-config $'\\xff.yaml' --format {form}", PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["validate-config", ""], 2, "name of a file is empty"),
        (["validate-config", "good.yaml", "--select", "SPC999"], 2, "no rule begins so"),
        (["validate-config", "good.yaml", "--ignore", "foo"], 2, "no rule begins so"),
        (["validate-config", "good.yaml", "--select", "spc1,SPC503"], 0, ""),
        (["convert", "good.yaml", "--to", "trtllm", "--to-release", "banana"], 2, "no release number"),
        (["explain", ""], 2, "no rule"),
        (["validate-config", "good.yaml", "--output", "/nowhere/x"], 3, "cannot be written"),
    ],
)
def test_odd_options(argv: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == status
    assert said in capsys.readouterr().err


def test_a_command_line_quoted_as_a_whole_or_broken_by_a_backslash(capsys: pytest.CaptureFixture[str]) -> None:
    setting: Any = """--speculative-config '{"method":"ngram","num_speculative_tokens":0}'"""
    assert run(["validate-config", "--", f"vllm serve a/model {setting}"]) == 1
    assert "num_speculative_tokens is 0" in capsys.readouterr().out
    assert run(["validate-config", "--", "vllm", "serve", "a/model", "\\ ", "--spec-tokens", "3"]) == 1
    assert "a backslash continues a line only as its very last character" in capsys.readouterr().out


def test_help_has_no_stray_backslashes() -> None:
    for command in ("serve", "bench", "validate-config"):
        done = shell(f"$S {command} --help")
        assert "[default" in done.stdout
        assert "\\" not in done.stdout
