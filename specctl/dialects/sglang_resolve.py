# ruff: noqa: SIM905 (a list of words reads better as one text)
"""What SGLang makes of its flags: names, the three numbers, the 48 requests, attention backend and page size.

Follows the order of SGLang 0.5.22 (`arg_groups/speculative_hook.py`). Nothing is judged here; facts for rules stand
in `reading.notes`: `algorithm` (resolved; None: off), `typed`, `architecture` (of the target), `device`, `draft`
(ModelFacts), `adaptive`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specctl.dialects.reading import Reading
from specctl.dialects.sglang import ALGORITHMS, EAGLE_FAMILY, ROWS
from specctl.dialects.sglang_attention import attention

MTP_INSIDE = frozenset(
    (
        "DeepseekV32ForCausalLM DeepseekV3ForCausalLM DeepseekV4ForCausalLM Glm4MoeForCausalLM "
        "Glm4MoeLiteForCausalLM GlmMoeDsaForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM "
        "BailingMoeV2_5ForCausalLM MistralLarge3ForCausalLM PixtralForConditionalGeneration HYV3ForCausalLM "
        "HYV4ForCausalLM Qwen4ExpForConditionalGeneration"
    ).split()
)
WIDE = frozenset({"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"})
MULTI_LAYER = frozenset(
    {"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "Step3p5ForCausalLM", "Step3p7ForCausalLM", "GigaChat35ForCausalLM"}
)
GEMMA_ASSISTANTS = frozenset({"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"})
LIMIT = 48
DEFAULT_CANDIDATES = [0, 1, 3, 5, 7]
TRIPLE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def resolve(reading: Reading) -> None:
    """Fill `reading.effective`, `changes` and `notes`."""
    reading.around.tidy()
    target = reading.around.target_facts
    reading.notes["architecture"] = target.architecture if target else None
    reading.notes["device"] = device(reading.around.platform)
    draft = reading.get("speculative_draft_model_path")
    reading.notes["draft"] = reading.around.facts(draft)
    name = _algorithm(reading)
    reading.notes["algorithm"] = None if name in (None, "NONE") else name
    reading.notes["method"] = _canonical(name)
    reading.off = reading.notes["algorithm"] is None
    effective: dict[str, Any] = {"speculative_algorithm": name}
    reading.effective = effective
    for key in TRIPLE:
        effective[key] = reading.get(key)
    effective["speculative_draft_model_path"] = draft
    _draft_options(reading, effective, draft)
    multi = bool(reading.get("enable_multi_layer_eagle")) or (
        reading.get("speculative_algorithm") == "EAGLE" and reading.notes["architecture"] in MULTI_LAYER
    )
    effective["enable_multi_layer_eagle"] = multi
    attention(reading, effective)
    _parallel(reading, effective)
    _by_algorithm(reading, effective, str(name))
    _requests(reading, effective)


def device(platform: str | None) -> str:
    """SGLang's device of a GPU kind: `cuda` (NVIDIA and AMD), `cpu`, `xpu` or `npu`."""
    kind = (platform or "h100").lower()
    if kind.startswith("cpu"):
        return "cpu"
    return "xpu" if kind.startswith(("xpu", "pvc", "bmg")) else "npu" if kind.startswith(("npu", "ascend")) else "cuda"


def _algorithm(reading: Reading) -> str | None:
    typed = reading.get("speculative_algorithm")
    reading.notes["typed"] = typed
    if typed is None:
        return None
    name = str(typed).upper()
    draft = reading.notes["draft"]
    gemma = draft is not None and bool(GEMMA_ASSISTANTS & set(draft.architectures))
    reading.notes["gemma_draft"] = gemma
    if name in ("NEXTN", "EAGLE"):
        return "FROZEN_KV_MTP" if gemma else "EAGLE"
    return name


def _canonical(name: str | None) -> str | None:
    table = {
        "NGRAM": "ngram",
        "STANDALONE": "draft_model",
        "EAGLE": "eagle",
        "EAGLE3": "eagle3",
        "DFLASH": "dflash",
        "DSPARK": "dspark",
        "FROZEN_KV_MTP": "mtp",
        "UNO": "uno",
    }
    return table.get(str(name))


def _draft_options(reading: Reading, effective: dict[str, Any], draft: str | None) -> None:
    effective["speculative_draft_model_revision"] = reading.get("speculative_draft_model_revision") or (
        "main" if draft else None
    )
    own, target = reading.get("speculative_draft_model_quantization"), reading.around.args.get("quantization")
    effective["speculative_draft_model_quantization"] = own or target
    if own is None and target is not None and draft is not None:
        reading.change(
            "SPC323",
            "speculative_draft_model_quantization",
            None,
            target,
            "the draft takes over the target's --quantization",
            "write --speculative-draft-model-quantization unquant where the draft is not quantized",
        )
    for row in ROWS:
        if row.key not in effective and reading.given(row.key):
            effective[row.key] = reading.get(row.key)


def _parallel(reading: Reading, effective: dict[str, Any]) -> None:
    args = reading.around.args
    pipeline = args.get("pp_size") or 1
    effective["disable_overlap_schedule"] = bool(args.get("disable_overlap_schedule")) or (
        isinstance(pipeline, int) and pipeline > 1
    )
    effective["enable_mixed_chunk"] = bool(args.get("enable_mixed_chunk"))


def attention_dp(reading: Reading) -> int:
    """The size of attention data parallelism, old and new spelling."""
    args = reading.around.args
    if args.get("enable_dp_attention"):
        return int(args.get("dp_size") or 1)
    return int(args.get("attn_dp_size") or 1)


def _by_algorithm(reading: Reading, effective: dict[str, Any], name: str) -> None:
    _adaptive(reading, effective, name)
    if reading.get("speculative_use_block_verification") and name in ("EAGLE", "EAGLE3"):
        effective["speculative_use_rejection_sampling"] = True
    if name in EAGLE_FAMILY:
        _eagle(reading, effective, name)
    elif name == "NGRAM":
        _ngram(reading, effective)
    elif name == "DFLASH":
        _dflash(reading, effective)
    elif name == "DSPARK":
        _dspark(reading, effective)
    elif name == "UNO":
        _uno(reading, effective)
    elif name == "FROZEN_KV_MTP":
        _mixed_off(reading, effective, name)


def candidates(reading: Reading) -> list[int]:
    """The sorted union of the adaptive candidates; what is wrong with the file stands in `notes['adaptive_fault']`."""
    path = reading.get("speculative_adaptive_config")
    if path is None:
        return DEFAULT_CANDIDATES
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reading.notes["adaptive_fault"] = f"{path} is not a readable JSON file: {type(error).__name__}"
        return []
    slots = {key: item for key, item in data.items() if key.isdecimal()} if isinstance(data, dict) else {}
    steps = [item.get("candidate_steps") if isinstance(item, dict) else None for item in slots.values()]
    if not slots or not all(
        isinstance(part, list) and part and all(isinstance(n, int) and n >= 0 for n in part) for part in steps
    ):
        reading.notes["adaptive_fault"] = (
            f"{path} needs batch sizes as keys, each with candidate_steps, such as "
            '{"1": {"candidate_steps": [1, 3, 7]}}'
        )
        return []
    return sorted({number for part in steps if part for number in part})


def _adaptive(reading: Reading, effective: dict[str, Any], name: str) -> None:
    effective["speculative_adaptive"] = False
    if not reading.get("speculative_adaptive"):
        return
    topk = reading.get("speculative_eagle_topk")
    reason = None
    if name not in ("EAGLE", "EAGLE3"):
        reason = "only EAGLE and EAGLE3 can adapt"
    elif topk is not None and topk != 1:
        reason = f"topk is {topk}; only a chain (topk 1) can adapt"
    elif attention_dp(reading) > 1:
        reason = "attention data parallelism is on"
    elif effective["enable_multi_layer_eagle"]:
        reason = "the target runs one prediction layer for each step"
    elif reading.around.args.get("enable_two_batch_overlap") or reading.around.args.get("enable_pdmux"):
        reason = "two-batch overlap or PD multiplexing is on"
    if reason:
        reading.change("SPC323", "speculative_adaptive", True, False, reason, "leave out --speculative-adaptive")
        return
    options = candidates(reading)
    effective["speculative_adaptive"] = True
    reading.notes["candidates"] = options
    steps = reading.get("speculative_num_steps")
    if options and steps is None:
        steps = options[len(options) // 2]
    effective["speculative_eagle_topk"] = topk or 1
    effective["speculative_num_steps"] = steps
    _width_of_chain(reading, effective, steps)


def _width_of_chain(reading: Reading, effective: dict[str, Any], steps: int | None) -> None:
    given = reading.get("speculative_num_draft_tokens")
    if steps is None:
        return
    effective["speculative_num_draft_tokens"] = steps + 1
    if given is not None and given != steps + 1:
        reading.change("SPC323", "speculative_num_draft_tokens", given, steps + 1, "with topk 1 it is always steps + 1")


def _eagle(reading: Reading, effective: dict[str, Any], name: str) -> None:
    architecture = reading.notes["architecture"]
    if name == "STANDALONE":
        _mixed_off(reading, effective, name)
    if architecture in MTP_INSIDE and effective["speculative_draft_model_path"] is None:
        effective["speculative_draft_model_path"] = reading.around.target
        effective["speculative_draft_model_revision"] = reading.around.args.get("revision")
        reading.notes["own_draft"] = True
    steps, topk, width = (effective[key] for key in TRIPLE)
    if not effective["speculative_adaptive"] and steps is None and topk is None and width is None:
        steps, topk, width = auto_numbers(name, architecture)
        effective |= dict(zip(TRIPLE, (steps, topk, width), strict=True))
    if _rejection_on_rocm(reading, effective, name, topk):
        effective["speculative_use_rejection_sampling"] = True
        reading.change(
            "SPC323",
            "speculative_use_rejection_sampling",
            None,
            True,
            "without it ROCm verifies greedily",
            "write --speculative-use-rejection-sampling",
        )
    if topk == 1 and steps is not None and not effective["speculative_adaptive"]:
        _width_of_chain(reading, effective, steps)


def auto_numbers(name: str, architecture: str | None) -> tuple[int | None, int | None, int | None]:
    """The triple that SGLang fills in; unknown without the target, except for STANDALONE."""
    if name == "STANDALONE":
        return 3, 1, 4
    if architecture is None:
        return None, None, None
    return (5, 4, 8) if architecture in WIDE else (3, 1, 4)


def _rejection_on_rocm(reading: Reading, effective: dict[str, Any], name: str, topk: int | None) -> bool:
    thresholds = (
        reading.get("speculative_accept_threshold_single", 1.0),
        reading.get("speculative_accept_threshold_acc", 1.0),
    )
    amd = (reading.around.platform or "").lower().startswith(("mi", "gfx"))
    return (
        amd
        and not effective.get("speculative_use_rejection_sampling")
        and name in ("EAGLE", "EAGLE3")
        and topk == 1
        and not reading.given("speculative_token_map")
        and thresholds == (1.0, 1.0)
        and not reading.around.args.get("enable_deterministic_inference")
    )


def _mixed_off(reading: Reading, effective: dict[str, Any], name: str) -> None:
    if effective["enable_mixed_chunk"]:
        reading.change("SPC323", "enable_mixed_chunk", True, False, f"{name} does not run with mixed chunks")
    effective["enable_mixed_chunk"] = False


def _ngram(reading: Reading, effective: dict[str, Any]) -> None:
    _mixed_off(reading, effective, "NGRAM")
    breadth = reading.get("speculative_ngram_max_bfs_breadth", 10)
    given = reading.get("speculative_eagle_topk")
    if given is not None and given != breadth:
        reading.change(
            "SPC323",
            "speculative_eagle_topk",
            given,
            breadth,
            "NGRAM takes --speculative-ngram-max-bfs-breadth for it",
            f"write --speculative-ngram-max-bfs-breadth {given}",
        )
    effective["speculative_eagle_topk"] = breadth
    width = reading.get("speculative_num_draft_tokens")
    if width is None:
        width = 12
    effective["speculative_num_draft_tokens"] = width
    if reading.get("speculative_num_steps") is None:
        effective["speculative_num_steps"] = width // breadth if breadth else None


def _block_numbers(reading: Reading, effective: dict[str, Any], name: str) -> None:
    for key in TRIPLE[:2]:
        given = reading.get(key)
        if given not in (None, 1):
            reading.change("SPC323", key, given, 1, f"{name} only runs with 1")
        effective[key] = 1


def _dflash(reading: Reading, effective: dict[str, Any]) -> None:
    _block_numbers(reading, effective, "DFLASH")
    width = reading.get("speculative_dflash_block_size") or reading.get("speculative_num_draft_tokens")
    draft = reading.notes["draft"]
    if width is None and draft is not None:
        width = draft.block_size or 16
    effective["speculative_num_draft_tokens"] = width
    backend = reading.get("speculative_draft_attention_backend")
    chosen = backend or effective["attention_backend"]
    if chosen not in ("flashinfer", "fa3", "fa4", "triton", "ascend", "intel_xpu"):
        amd = (reading.around.platform or "").lower().startswith("mi")
        chosen = "triton" if amd or reading.notes["device"] == "xpu" else "flashinfer"
        if backend is not None:
            reading.change(
                "SPC323", "speculative_draft_attention_backend", backend, chosen, "DFLASH drafts do not run on it"
            )
    effective["speculative_draft_attention_backend"] = chosen


def _dspark(reading: Reading, effective: dict[str, Any]) -> None:
    _block_numbers(reading, effective, "DSPARK")
    draft = reading.notes["draft"]
    gamma = reading.get("speculative_dspark_block_size") or (draft.block_size if draft is not None else None)
    width = reading.get("speculative_num_draft_tokens")
    if gamma is None and width is None and (draft is not None or reading.get("speculative_draft_model_path") is None):
        gamma = 7
    reading.notes["gamma"] = gamma
    effective["speculative_num_draft_tokens"] = gamma + 1 if gamma is not None else width


def _uno(reading: Reading, effective: dict[str, Any]) -> None:
    if (reading.get("speculative_eagle_topk") or 1) <= 1:
        _block_numbers(reading, effective, "UNO")
    _mixed_off(reading, effective, "UNO")


def _requests(reading: Reading, effective: dict[str, Any]) -> None:
    """Speculation sets 48 running requests where nothing is set."""
    given = reading.around.args.get("max_running_requests")
    effective["max_running_requests"] = given
    name = reading.notes["algorithm"]
    if given is None and name in ALGORITHMS and name not in ("UNO", "NONE"):
        limit = 256 if reading.notes["architecture"] == "DeepseekV4ForCausalLM" else LIMIT
        effective["max_running_requests"] = limit
    if reading.notes["device"] == "cpu" and name in EAGLE_FAMILY | {"NGRAM"}:
        effective["disable_overlap_schedule"] = True
