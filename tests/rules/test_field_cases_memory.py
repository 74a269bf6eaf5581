"""What goes wrong with memory when a draft is added, and what we say to it before the start.

The numbers are those of our collection of public reports, as in `test_field_cases.py`."""

from __future__ import annotations

from typing import Any

import pytest

from specctl.planning.known_targets import TARGETS
from tests.rules.test_field_cases import folder, lay, said, sglang, trtllm, vllm

__all__ = ["folder"]  # the fixture that every case here starts in

CHAIN = " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"


def notes_of(report: Any, code: str) -> str:
    return " | ".join(note for each in report.diagnostics if each.code == code for note in each.notes)


def test_f62_draft_memory_outside_the_budget() -> None:
    lay("t", TARGETS["meta-llama/Llama-3.3-70B-Instruct"])
    lay("d", TARGETS["meta-llama/Llama-3.1-8B-Instruct"])
    line = "--model-path ./t --tp-size 4 --speculative-algorithm STANDALONE --speculative-draft-model-path ./d" + CHAIN
    report = sglang(line + " --mem-fraction-static 0.4", platform="h100")
    assert report.verdict == "accepts"
    # (141.11 GB + 16.06 GB) / 4 and a conversation of 8192 tokens on each GPU of 79.65 GiB
    assert "warning SPC241: --mem-fraction-static 0.4 is too small" in said(report)
    assert "they need 0.48 (give 0.48 to 0.93)" in said(report)
    assert "target's weights: 32.85 GiB | draft's weights: 3.74 GiB" in notes_of(report, "SPC241")
    assert "640.00 MiB, the draft's 256.00 MiB" in notes_of(report, "SPC241")
    assert "SPC241" not in said(sglang(line + " --mem-fraction-static 0.5", platform="h100"))
    assert "0.93 is the most" in said(sglang(line + " --mem-fraction-static 0.97", platform="h100"))
    assert "SPC241" not in said(sglang(line + " --mem-fraction-static 0.4"))  # without a GPU nothing is said


def test_f63_no_fraction_works() -> None:
    lay("t", TARGETS["Qwen/Qwen3-14B"])
    lay("d", TARGETS["Qwen/Qwen3-1.7B"])
    line = (
        "--model-path ./t --context-length 40960 --speculative-algorithm STANDALONE --speculative-draft-model-path ./d"
    )
    report = sglang(line + CHAIN, platform="l40s")
    assert "warning SPC241: no --mem-fraction-static works" in said(report)
    for shrink in ("draft tokens", "--cuda-graph-max-bs-decode", "--max-running-requests", "--context-length"):
        assert shrink in said(report)
    shorter = line.replace("40960", "8192")
    assert "SPC241" not in said(sglang(shorter + CHAIN, platform="l40s"))


def test_f64_the_whole_draft_on_the_first_gpu() -> None:
    lay("t", TARGETS["meta-llama/Llama-3.3-70B-Instruct"])
    lay("d", TARGETS["meta-llama/Llama-3.1-8B-Instruct"])
    four = {"tensor_parallel_size": 4, "gpu_memory_utilization": 0.99}
    setting = {"method": "draft_model", "model": "./d", "num_speculative_tokens": 3}
    unsplit = vllm(setting | {"draft_tensor_parallel_size": 1}, target="./t", platform="h100", engine_args=four)
    assert "warning SPC240: the first of 4 GPUs holds the whole draft: 32.85 GiB of the target and 14.96 GiB" in said(
        unsplit
    )
    assert "the draft's 1.00 GiB" in notes_of(unsplit, "SPC240")
    assert "SPC240" not in said(vllm(setting, target="./t", platform="h100", engine_args=four))
    one = vllm(setting, target="./t", platform="h100")
    assert "the weights do not fit on NVIDIA H100 SXM 80 GB: 131.42 GiB" in said(one)
    assert "tensor_parallel_size 4" in said(one)


EAGLE = "decoding_type: Eagle3, max_draft_len: 3, speculative_model: yuhuili/EAGLE3-LLaMA3.3-Instruct-70B"


def test_tensorrt_llm_counts_from_free_memory() -> None:
    lay("t", TARGETS["meta-llama/Llama-3.3-70B-Instruct"])
    two = {"tensor_parallel_size": 2, "max_seq_len": 8192}
    report = trtllm(EAGLE, target="./t", platform="h100", engine_args=two)
    assert "SPC240" not in said(report)
    report = trtllm(EAGLE, target="./t", platform="h100", engine_args={"max_seq_len": 8192})
    assert "the weights do not fit" in said(report)
    assert "tensor_parallel_size 2" in said(report)
    assert "--" not in next(each.help for each in report.diagnostics if each.code == "SPC240")


@pytest.mark.parametrize("platform", [None, "cpu", "a toaster"])
def test_without_a_known_gpu_nothing_is_said_of_memory(platform: str | None) -> None:
    lay("t", TARGETS["meta-llama/Llama-3.3-70B-Instruct"])
    assert "SPC24" not in said(trtllm(EAGLE, target="./t", platform=platform))


@pytest.mark.parametrize("odd", [{"hidden_size": "wide"}, {"num_attention_heads": 0}, {"layer_types": [1, 2]}, {}])
def test_odd_configs_are_not_judged(odd: dict[str, Any]) -> None:
    lay("t", TARGETS["Qwen/Qwen3-8B"] | odd if odd else {})
    report = vllm({"method": "mtp", "num_speculative_tokens": 1}, target="./t", platform="h100")
    assert "SPC24" not in said(report)


def test_advice_on_load() -> None:
    lay("t", TARGETS["openai/gpt-oss-20b"])
    setting = {"method": "eagle3", "model": "Dogacel/specdrift-gpt-oss-20b-eagle3", "num_speculative_tokens": 5}
    many = vllm(setting, target="./t", platform="h100", engine_args={"max_num_seqs": 1024})
    assert "planned to pay up to 128 requests at once; the server takes 1024" in said(many)
    assert "[[1, 128, 5], [129, 1024, 0]]" in said(many)
    assert "SPC521" not in said(vllm(setting, target="./t", platform="h100", engine_args={"max_num_seqs": 64}))
    assert "SPC521" not in said(vllm(setting, target="./t", platform="h100"))
