"""What a verdict takes from around the setting: the target that a carrier names itself, the platform, assumptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specctl import check

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}
QWEN = LLAMA | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_attention_heads": 2}
MTP = QWEN | {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1}
EAGLE = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "org/head"}


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, config in (("llama", LLAMA), ("qwen", QWEN), ("mtp", MTP)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))


def flags(values: dict[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in (f"--{key.replace('_', '-')}", value)]


@pytest.mark.parametrize(
    ("model", "numbers"), [("llama", (5, 4, 8)), ("qwen", (3, 1, 4)), ("org/unknown", (None, None, None))]
)
@pytest.mark.parametrize("carrier", ["python", "yaml", "flags", "config", "command"])
def test_sglang_takes_the_target_from_every_carrier(carrier: str, model: str, numbers: tuple[Any, ...]) -> None:
    values = {"model_path": model} | EAGLE
    text = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in values.items())
    Path("serve.yaml").write_text(text)
    source, form = {
        "python": (values, "python"),
        "yaml": (text, "yaml"),
        "flags": (flags(values), "argv"),
        "config": (["sglang", "serve", "--config", "serve.yaml"], "argv"),
        "command": (["sglang", "serve", model, *flags(EAGLE)], "argv"),
    }[carrier]
    report = check(source, engine="sglang", form=form)
    assert report.verdict == "accepts"
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    assert tuple(report.effective[name] for name in names) == numbers


def test_the_caller_stands_above_the_setting() -> None:
    given = check(["--model-path", "org/x", *flags(EAGLE)], engine="sglang", target="llama")
    assert given.effective["speculative_num_steps"] == 5
    first = check(["vllm", "serve", "mtp", "--model", "llama", "--spec-method", "mtp", "--spec-tokens", "1"])
    assert first.effective["target_model"] == "mtp"


@pytest.mark.parametrize("form", ["yaml", "python"])
def test_vllm_takes_the_target_from_file_and_arguments(form: str) -> None:
    values = {"model": "mtp", "speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
    report = check(values if form == "python" else json.dumps(values), engine="vllm", form=form)
    assert (report.verdict, report.effective["model"]) == ("accepts", "mtp")
    report = check(values | {"model": "llama"}, engine="vllm", form="python")
    assert report.verdict == "refuses"  # Llama has no prediction layers


def test_a_target_that_a_file_names_may_be_elsewhere() -> None:
    text = (
        "model: /models/llama\nspeculative-config: {method: ngram, num_speculative_tokens: 3, prompt_lookup_max: 3}\n"
    )
    found = {each.code: each.severity for each in check(text).diagnostics}
    assert found["SPC201"] == "warning"
    command = ["vllm", "serve", "/models/llama", "--spec-method", "ngram", "--spec-tokens", "3"]
    assert {each.code: each.severity for each in check(command).diagnostics}["SPC201"] == "error"


@pytest.mark.parametrize("words", [["--speculative-adaptive", "true"], ["--tp-size", "1", "llama"]])
def test_sglang_serve_takes_the_model_as_its_first_word_only(words: list[str]) -> None:
    report = check(["sglang", "serve", *words, "--speculative-algorithm", "NGRAM"])
    assert "SPC008" in [each.code for each in report.diagnostics]


def test_a_mapping_without_a_method_is_still_the_setting() -> None:
    report = check({"methd": "ngram", "prompt_lookup_max": 3}, engine="vllm")
    assert "did you mean 'method'?" in [each.help for each in report.diagnostics]
    assert check({"tensor_parallel_size": 2, "seed": 1}, engine="vllm").spec is None
    words = {"method": "ngram", "num_speculative_tokens": 3}
    assert check(words, engine="vllm", form="python").verdict == "refuses"  # LLM(method=...) is a TypeError


@pytest.mark.parametrize(
    ("platform", "backend"),
    [("h100", "fa3"), ("NVIDIA H100 80GB HBM3", "fa3"), ("AMD Instinct MI300X", "aiter"), ("B200", "flashinfer")],
)
def test_platforms_as_people_and_drivers_write_them(platform: str, backend: str) -> None:
    report = check(flags(EAGLE), engine="sglang", platform=platform)
    assert report.effective["attention_backend"] == backend
    assert not any("device" in each or "server" in each for each in report.result.assumptions)


def test_what_nobody_said_is_noted() -> None:
    def said(source: Any, **options: Any) -> str:
        return "\n".join(check(source, **options).result.assumptions)

    assert "ordinary NVIDIA server" in said(flags(EAGLE))
    assert "5, 4, 8 on Llama" in said(flags(EAGLE))
    assert "5, 4, 8" not in said(flags(EAGLE), target="qwen")
    assert "foo is no kind of device" in said(flags(EAGLE), platform="foo")
    assert "arctic-inference" in said({"method": "suffix"})
    assert said({"method": "suffix"}, host={"arctic_inference": True}) == ""
    assert said({"method": "ngram", "num_speculative_tokens": 3}) == ""
