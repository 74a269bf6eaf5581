"""`specctl presets`, and `--spec NAME` wherever a file can stand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from specctl.cli.main import run
from specctl.presets import every, find
from specctl.resources import presets_dir

Capture = pytest.CaptureFixture[str]
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"


def test_list_has_a_line_a_preset_and_filters(capsys: Capture) -> None:
    assert run(["presets", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(list(presets_dir().glob("*.yaml")))
    assert lines[0].split() == ["name", "target", "method", "k", "engines", "published", "best"]
    row = next(line for line in lines if line.startswith("llama-3.1-8b-eagle3 "))
    assert "meta-llama/Llama-3.1-8B-Instruct" in row
    assert "vLLM >=0.9" in row
    assert row.endswith("3.02 (HumanEval, k=3)")
    assert run(["presets", "list", "--target", "GPT-OSS-120B", "--engine", "trtllm", "--method", "eagle3"]) == 0
    found = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert found == [f"gpt-oss-120b-eagle3-{each}" for each in ("long-context", "short-context", "throughput", "v3")]


def test_list_as_json(capsys: Capture) -> None:
    assert run(["presets", "list", "--engine", "specctl", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["format_version"] == 1
    names = [each["name"] for each in answer["presets"]]
    assert names == ["coding-ngram", "coding-suffix", "demo-draft", "demo-ngram", "demo-suffix"]
    assert answer["presets"][2]["model"] == "demo-draft"


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["list", "--engine", "vlm"], 2, "did you mean vllm?"),
        (["list", "--method", "eagle4"], 2, "did you mean eagle"),
        (["list", "--format", "yaml"], 2, "text, json"),
        (["show", "demo-ngran"], 3, "did you mean demo-ngram?"),
        (["show", "../schemas/specctl"], 3, "no preset"),
        (["show", "demo-ngram", "--to", "vllm"], 2, "not for vllm"),
        (["check", "demo-ngran"], 3, "did you mean demo-ngram?"),
        (["sho"], 2, "no such command 'sho'; did you mean show?"),
        (["list", "--spec", "demo-ngram"], 2, "presets takes no setting, and --spec demo-ngram is one"),
        (["check", "--", "vllm", "serve", "demo"], 2, "presets takes no setting"),
    ],
)
def test_wrong_use(argv: list[str], status: int, words: str, capsys: Capture) -> None:
    assert run(["presets", *argv]) == status
    assert words in capsys.readouterr().err


def test_show_prints_the_file_and_what_it_becomes(capsys: Capture) -> None:
    assert run(["presets", "show", "qwen3-8b-draft-qwen3-0.6b"]) == 0
    out = capsys.readouterr().out
    assert out.startswith((presets_dir() / "qwen3-8b-draft-qwen3-0.6b.yaml").read_text("utf-8"))
    heads = [line for line in out.splitlines() if line.startswith(("# vLLM", "# SGLang 0", "# TensorRT-LLM 1"))]
    assert heads == ["# vLLM 0.31.0", "# SGLang 0.5.22", "# TensorRT-LLM 1.2.1", "# TensorRT-LLM 1.4.0rc0"]
    assert "decoding_type: DraftTarget" in out
    assert "decoding_type: Draft_Target" in out


def test_show_for_one_engine(capsys: Capture) -> None:
    assert run(["presets", "show", "kimi-k2-eagle3", "--to", "sglang", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["release"] for each in answer["conversions"]] == ["0.5.22"]
    assert CHAIN in answer["conversions"][0]["text"]
    assert answer["published"][0]["k"] == 3


def test_check_all_and_one_that_fails(tmp_path: Path, capsys: Capture) -> None:
    assert run(["presets", "check", "--strict"]) == 0
    assert capsys.readouterr().out.endswith(" 0 failed\n")
    mine = tmp_path / "mine.yaml"
    mine.write_text('specctl: 1\nmethod: pard\nmodel: o/d\nnum_speculative_tokens: 4\nengines: {sglang: ">=0.5"}\n')
    assert run(["presets", "check", str(mine), "demo-ngram"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  mine" in out
    assert "SPC401" in out
    assert "ok    demo-ngram" in out
    mine.write_text('specctl: 1\nmethod: ngram\nnum_speculative_tokens: 4\nengines: {vllm: ">=99.0"}\n')
    assert run(["presets", "check", str(mine), "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["presets"][0]["faults"] == ["engines says vLLM >=99.0; known releases are 0.31.0"]


@pytest.mark.parametrize("text", ["", "\x00", "specctl: 1", "[1]", "specctl: 1\nmethod: ngram\n", "a: [", "method: x"])
def test_check_answers_any_file(text: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    assert run(["presets", "check", str(tmp_path / "odd.yaml")]) == 1
    assert "FAIL  odd" in capsys.readouterr().out


def test_spec_takes_a_name_in_validate_config_and_convert(capsys: Capture) -> None:
    assert run(["validate-config", "--spec", "llama-3.1-8b-eagle3", "--engine", "vllm", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"][0]["effective"]["num_speculative_tokens"] == 3
    assert run(["convert", "--spec", "llama-3.1-8b-eagle3-specforge", "--to", "sglang"]) == 0
    assert CHAIN in capsys.readouterr().out
    assert run(["convert", "--spec=qwen3-8b-pard", "--to", "trtllm"]) == 1
    assert "use TensorRT-LLM 1.4.0rc0" in capsys.readouterr().err
    assert run(["convert", "--spec", "qwen3-8b-pard", "--to", "trtllm", "--to-release", "1.4.0rc0"]) == 0
    assert "decoding_type: PARD" in capsys.readouterr().out


def test_converted_to_its_own_format_a_preset_keeps_its_comments(capsys: Capture) -> None:
    assert run(["convert", "--spec", "coding-ngram", "--to", "specctl"]) == 0
    assert capsys.readouterr().out == (presets_dir() / "coding-ngram.yaml").read_text("utf-8")


def test_an_unknown_name_names_the_nearest(capsys: Capture) -> None:
    assert run(["validate-config", "--spec", ""]) == 3
    assert "no preset and no file is called ''" in capsys.readouterr().err
    assert run(["validate-config", "--spec", "llama-3.1-8b-eagl3"]) == 3
    assert "did you mean llama-3.1-8b-eagle3?" in capsys.readouterr().err


def test_a_name_is_reserved_and_a_file_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo-ngram").write_text("specctl: 1\nmethod: suffix\nnum_speculative_tokens: 9\n")
    assert run(["convert", "--spec", "demo-ngram", "--to", "specctl"]) == 0
    told = capsys.readouterr()
    assert "method: ngram" in told.out
    assert "the file of that name is ./demo-ngram" in told.err
    assert run(["convert", "--spec", "./demo-ngram", "--to", "specctl"]) == 0
    told = capsys.readouterr()
    assert "method: suffix" in told.out
    assert not told.err


@pytest.mark.parametrize("argv", [["validate-config", "coding-ngram"], ["convert", "coding-ngram", "--to", "vllm"]])
def test_a_name_where_a_file_stands_is_answered_with_the_flag(argv: list[str], capsys: Capture) -> None:
    assert run(argv) == 3
    assert "--spec coding-ngram" in capsys.readouterr().err


def test_serve_starts_the_presets_target_on_a_real_engine(capsys: Capture) -> None:
    assert run(["serve", "--spec", "llama-3.1-8b-eagle3", "--engine", "vllm", "--dry-run"]) == 0
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct " in capsys.readouterr().out
    assert run(["serve", "--spec", "qwen3-8b-pard", "--engine", "trtllm", "--dry-run"]) == 1
    assert "use TensorRT-LLM 1.4.0rc0" in capsys.readouterr().err


def test_target_takes_a_preset(capsys: Capture) -> None:
    setting = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4}']
    assert run(["validate-config", *setting, "--target", "demo-ngram"]) == 0
    capsys.readouterr()
    assert run(["validate-config", *setting, "--target", "coding-ngram"]) == 2
    assert "for any target" in capsys.readouterr().err
    assert run(["validate-config", *setting, "--target", "kimi-k2-eagle3"]) == 3
    assert "moonshotai/Kimi-K2-Instruct" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["list"], ["show", "demo-draft"], ["check", "demo-draft"]], ids=" ".join)
def test_it_loads_nothing_heavy(argv: list[str]) -> None:
    heavy = ("torch", "transformers", "numpy", "fastapi", "pydantic")
    script = (
        f"import sys; from specctl.cli.main import run; assert run(['presets', *{argv!r}]) == 0;"
        f"assert not [name for name in {heavy!r} if name in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, capture_output=True)


# Presets whose target or draft has no published shape: nothing can be worked out for them yet.
UNPLANNED = {
    "gemma-4-e2b-assistant",
    "gemma-4-e4b-assistant",
    "gemma-4-26b-a4b-assistant",
    "kimi-k2-eagle3",
    "llama-3.1-8b-eagle3-authors-sglang",
    "llama-3.3-70b-eagle3-authors-sglang",
    "llama-4-maverick-eagle3",
    "minimax-m3-eagle3.1",
    "mistral-small-4-119b-eagle",
    "qwen3-30b-a3b-dflash",
    "qwen3-4b-thinking-2507-draft-qwen3-0.6b",
    "qwen3-8b-dflash2",
}


@pytest.mark.parametrize("name", [preset.name for preset in every() if preset.name not in UNPLANNED])
def test_a_preset_can_be_planned(name: str, capsys: Capture) -> None:
    target = find(name).config.target
    gpus = "64" if "2.4t" in name else "1" if target == "demo" else "8"
    sizes = ["--gpu", "b200", "--tp", gpus, "--context", "1024", "--concurrency", "1"]
    assert run(["plan", target or "Qwen/Qwen3-8B", "--spec", name, *sizes, "--format", "json"]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    assert [each["concurrency"] for each in curve] == [1]


def test_a_preset_for_any_target_cannot_be_planned_alone(capsys: Capture) -> None:
    assert run(["plan", "coding-ngram", "--gpu", "h100"]) == 2
    assert "specctl plan TARGET --spec coding-ngram" in capsys.readouterr().err
