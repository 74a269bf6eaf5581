"""Options beside the setting that decide whether it runs, and the place that a finding about them points to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specctl.rules.checker import check, check_argv

NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
EAGLE3 = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
TREE = "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"
HEAD = "--speculative-algorithm EAGLE3 --speculative-draft-model-path org/head"


def vllm(setting: Any, **options: Any) -> Any:
    return check(json.dumps(setting), engine="vllm", form="json", **options)


def codes(report: Any) -> set[str]:
    return {each.code for each in report.diagnostics if each.severity == "error"}


@pytest.mark.parametrize(
    ("setting", "surroundings", "verdict"),
    [
        (NGRAM, {}, "fails-at-start"),
        (NGRAM, {"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}}, "fails-at-start"),
        (EAGLE3 | {"parallel_drafting": True}, {}, "fails-at-start"),
        (EAGLE3, {}, "accepts"),
        (EAGLE3, {"platform": "cpu"}, "fails-at-start"),
        (EAGLE3, {"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}}, "fails-at-start"),
        (EAGLE3, {"host": {"gpu_runner_available": False}}, "fails-at-start"),
        ({"method": "mtp", "num_speculative_tokens": 1}, {}, "accepts"),
        ("", {}, "accepts"),
    ],
)
def test_logits_processors_on_the_first_runner(setting: Any, surroundings: dict[str, Any], verdict: str) -> None:
    processors = {"engine_args": {"logits_processors": ["my.Processor"]}}
    source = setting if isinstance(setting, dict) else None
    assert vllm(source, **processors, **surroundings).verdict == verdict
    assert vllm(source, **surroundings).verdict == "accepts"


def test_logits_processors_on_a_command_line() -> None:
    report = check_argv(["vllm", "serve", "m", "--logits-processors", "a.b", "-sc", json.dumps(NGRAM)])
    found = report.diagnostics[0]
    assert (report.verdict, found.code) == ("fails-at-start", "SPC304")
    assert found.span is not None
    assert report.result.text[found.span.column - 1 : found.span.end_column - 1] == "a.b"


def test_dspark_on_the_first_runner() -> None:
    setting = {"method": "dspark", "model": "org/head", "num_speculative_tokens": 3}
    assert codes(vllm(setting)) == set()
    report = vllm(setting, env={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    assert (report.verdict, codes(report)) == ("refuses", {"SPC306"})


NEVER = {
    "--enable-lmcache": "leave out --enable-lmcache",
    "--enable-layernorm-sp": "leave out --enable-layernorm-sp",
    "--enable-kv-cache-sharding": "leave out --enable-kv-cache-sharding",
    "--enable-pd-role-switch": "leave out --enable-pd-role-switch",
    "--weight-cache-mode daemon": "leave out --weight-cache-mode",
    "--weight-cache-mode client": "leave out --weight-cache-mode",
    "--dwdp-size 2": "leave out --dwdp-size",
    "--disaggregation-mode decode --disaggregation-decode-enable-radix-cache": "radix-cache",
}


@pytest.mark.parametrize("option", NEVER)
@pytest.mark.parametrize("setting", ["--speculative-algorithm NGRAM", f"{HEAD} {CHAIN}"])
def test_options_that_go_with_no_algorithm(option: str, setting: str) -> None:
    report = check(f"{setting} {option}".split(), engine="sglang", form="argv")
    found = next(each for each in report.diagnostics if each.code == "SPC333")
    assert (report.verdict, found.severity) == ("refuses", "error")
    assert NEVER[option] in (found.help or "")
    assert found.span is not None
    assert report.result.text[found.span.column - 1 :].startswith(option.split()[-1])
    assert check(option.split(), engine="sglang", form="argv").verdict == "accepts"


@pytest.mark.parametrize("option", ["--weight-cache-mode off", "--dwdp-size 1", "--disaggregation-mode prefill"])
def test_the_same_options_switched_off(option: str) -> None:
    assert check(f"--speculative-algorithm NGRAM {option}".split(), engine="sglang", form="argv").verdict == "accepts"


def test_the_word_none_is_still_an_algorithm_to_some() -> None:
    for option, verdict in (("--enable-kv-cache-sharding", "refuses"), ("--enable-lmcache", "accepts")):
        tokens = f"--speculative-algorithm NONE {option}".split()
        assert check(tokens, engine="sglang", form="argv").verdict == verdict


@pytest.mark.parametrize("option", ["--enable-hisparse", "--enable-linear-replayssm-spec", "--enable-unified-memory"])
def test_options_that_need_a_chain(option: str) -> None:
    for numbers, verdict in ((CHAIN, "accepts"), (TREE, "refuses")):
        tokens = f"{HEAD} {numbers} {option} --attention-backend fa3".split()
        assert check(tokens, engine="sglang", form="argv").verdict == verdict


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [
        ("foo", "fails-at-start"),
        ("torch_native", "fails-at-start"),
        ("fa3", "accepts"),
        ("hybrid_linear_attn", "accepts"),
    ],
)
def test_the_attention_backend_of_the_draft(backend: str, verdict: str) -> None:
    tokens = f"{HEAD} {CHAIN} --speculative-draft-attention-backend {backend}".split()
    assert check(tokens, engine="sglang", form="argv").verdict == verdict


@pytest.mark.parametrize(
    ("release", "sampler", "verdict"),
    [
        ("1.2.1", "TRTLLMSampler", "accepts"),
        ("1.4.0rc0", "TorchSampler", "accepts"),
        ("1.4.0rc0", "TRTLLMSampler", "refuses"),
    ],
)
def test_the_sampler_of_tensorrt_llm(release: str, sampler: str, verdict: str) -> None:
    text = f"sampler_type: {sampler}\nspeculative_config: {{decoding_type: AUTO}}\n"
    report = check(text, engine="trtllm", release=release)
    assert report.verdict == verdict
    assert all(each.span and each.span.line == 1 for each in report.diagnostics)


def test_the_buffer_of_a_mamba_model() -> None:
    wide = CHAIN.replace("3", "299").replace(" 4", " 300")
    buffered = f"{HEAD} {wide} --mamba-radix-cache-strategy extra_buffer"
    assert codes(check(buffered.split(), engine="sglang", form="argv")) == {"SPC333"}
    assert codes(check(f"{buffered} --mamba-track-interval 512".split(), engine="sglang", form="argv")) == set()


def test_lora_with_ragged_verification() -> None:
    tokens = ["--speculative-algorithm", "DSPARK", "--speculative-draft-model-path", "org/head", "--enable-lora"]
    assert codes(check(tokens, engine="sglang", form="argv")) == set()
    ragged = {"SGLANG_RAGGED_VERIFY_MODE": "compact"}
    assert codes(check(tokens, engine="sglang", form="argv", env=ragged)) == {"SPC333"}


FILE = """\
max_batch_size: 8
kv_cache_config: {free_gpu_memory_fraction: 0.5}
speculative_config: {decoding_type: MTP, max_draft_len: 1, num_nextn_predict_layers: 1}
"""


@pytest.mark.parametrize(
    ("release", "size", "fraction"),
    [("1.2.1", "16 becomes 8", "0.7 becomes 0.5"), ("1.4.0rc0", "8 becomes 16", "0.5 becomes 0.7")],
)
def test_flags_and_file_of_tensorrt_llm(
    release: str, size: str, fraction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(FILE)
    line = "trtllm-serve m --config c.yaml --max_batch_size 16 --free_gpu_memory_fraction 0.7"
    report = check_argv(line.split(), release=release)
    found = [each for each in report.diagnostics if each.code == "SPC323"]
    assert [(each.span.line, each.span.column) for each in found if each.span] == [(1, 17), (2, 45)]
    assert size in found[0].message
    assert fraction in found[1].message.replace('"', "")
    assert report.source == "c.yaml"
