"""One table of exit statuses for all commands; help that names what is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specctl.cli.main import run

NGRAM = '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":2,"prompt_lookup_max":4}'
GONE = '{"model":"./gone","num_speculative_tokens":3}'


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def called(*argv: str) -> tuple[int, str]:
        status = run(list(argv))
        said = capsys.readouterr()
        return status, said.out + said.err

    return called


@pytest.mark.parametrize("command", ["validate-config", "bench", "serve"])
def test_a_missing_draft_ends_with_three(call: Any, command: str) -> None:
    status, said = call(command, "--speculative-config", GONE)
    assert (status, "'./gone' does not exist" in said) == (3, True)


@pytest.mark.parametrize("command", ["bench", "serve"])
def test_a_missing_target_ends_with_three(call: Any, command: str) -> None:
    status, said = call(command, "./gone")
    assert (status, "hf download" in said) == (3, False)


def test_convert_asks_for_no_files(call: Any) -> None:
    status, said = call("convert", "--speculative-config", GONE, "--to", "sglang")
    assert (status, "--speculative-draft-model-path ./gone" in said) == (0, True)


@pytest.mark.parametrize("command", ["bench", "serve"])
def test_a_release_without_a_setting_is_wrong_usage(call: Any, command: str) -> None:
    status, said = call(command, "--release", "0.31.0", "demo")
    assert (status, "no setting is given" in said) == (2, True)


def test_releases_that_are_not_known(call: Any) -> None:
    status, said = call("validate-config", "--release", "9.9.9", "--speculative-config", NGRAM)
    assert (status, "release 9.9.9 is not known" in said) == (0, True)
    status, said = call("convert", "--speculative-config", NGRAM, "--to", "trtllm", "--to-release", "9.9")
    assert (status, "note: release 9.9 of TensorRT-LLM is not known" in said) == (0, True)
    assert call("convert", "--speculative-config", NGRAM, "--to", "trtllm", "--to-release", "next")[0] == 2
    assert call("validate-config", "--release", "next", "--speculative-config", NGRAM)[0] == 2


def refused(path: Path, *_: object, **__: object) -> Any:
    raise PermissionError(13, "Permission denied", str(path))


def test_what_may_not_be_read_ends_with_three(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("f.yaml").write_text("speculative_config: {}\n")
    Path("m").mkdir()
    Path("m/config.json").write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refused)
        status, said = call("validate-config", "f.yaml")
        assert (status, "f.yaml cannot be read: Permission denied" in said) == (3, True)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", refused)
        status, said = call("validate-config", "--target", "m", "--speculative-config", NGRAM)
        assert (status, "config.json cannot be read: Permission denied" in said) == (3, True)


def test_words_that_are_no_setting(call: Any) -> None:
    status, said = call("validate-config", "-sc", "off")
    assert (status, "leave it out, or write null" in said) == (1, True)
    status, said = call("validate-config", "-sc", "eagel")
    assert (status, '{"method": "ngram", "num_speculative_tokens": 4}' in said) == (1, True)
    status, said = call("bench", "--methods", "nonsense", "demo")
    assert (status, "the methods are none, ngram, suffix" in said) == (2, True)
    status, said = call("bench", "--methods", "ngrma", "demo")
    assert (status, "did you mean ngram?" in said) == (2, True)


def test_what_a_conversion_leaves_behind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    setting = "speculative-config:\n  method: ngram\n  num_speculative_tokens: 4\n  prompt_lookup_max: 4\n"
    file.write_text(f"model: demo\nmax-model-len: 4096\n{setting}", "utf-8")
    assert run(["convert", str(file), "--to", "sglang"]) == 0
    assert f"left behind: 1 other key of {file}: max-model-len" in capsys.readouterr().err
    assert run(["convert", str(file), "--to", "vllm"]) == 0
    assert "left behind" not in capsys.readouterr().err
