# ruff: noqa: SIM905 (a list of words reads better as one text)
"""vLLM's keys of `--speculative-config`, its method names, and the writer.

Facts: vLLM 0.31.0, `vllm/config/speculative.py`. Unknown keys are refused; numbers are read in pydantic's lax mode.
"""

from __future__ import annotations

from typing import Any

from specctl.dialects.field import Field, default_at, has_path, read_path
from specctl.dialects.words import vllm_attention, vllm_cache, vllm_quantization
from specctl.spec import METHODS, ScheduleStep, SpecDecodeConfig

ENGINE = "vllm"
MOE_BACKENDS = tuple(
    (
        "auto triton batched_triton deep_gemm deep_gemm_mega_moe cutlass flashinfer_trtllm flashinfer_cutlass "
        "flashinfer_cutedsl flashinfer_b12x b12x flashinfer_moe_ep_mega_deep_gemm "
        "flashinfer_moe_ep_mega_cutedsl marlin humming triton_unfused aiter aiter_triton_mxfp4_bf16 flydsl "
        "hpc emulation rdna3"
    ).split()
)
KV_DTYPES = tuple(
    (
        "auto float16 bfloat16 fp8 fp8_e4m3 fp8_e5m2 fp8_inc fp8_ds_mla nvfp4_ds_mla turboquant_k8v4 "
        "turboquant_4bit_nc turboquant_k3v4_nc turboquant_3bit_nc int4_per_token_head int8_per_token_head "
        "fp8_per_token_head nvfp4 nvfp4_4over6"
    ).split()
)
MTP_ALIASES = frozenset(
    (
        "deepseek_mtp dots3_note_mtp mimo_mtp mimo_v2_mtp glm4_moe_mtp glm4_moe_lite_mtp glm_ocr_mtp "
        "ernie_mtp nemotron_h_mtp exaone_moe_mtp exaone4_5_mtp qwen3_next_mtp qwen4_exp_mtp qwen3_5_mtp "
        "longcat_flash_mtp bailing_hybrid_v3_mtp minimax_m3_mtp bailing_hybrid_mtp kimi_k3_mtp "
        "pangu_ultra_moe_mtp step3p5_mtp hy_v3_mtp hy_v4_mtp gemma4_mtp inkling_mtp glm5_next_mtp"
    ).split()
)
# native method name -> canonical name
METHOD_NAMES: dict[str, str] = {
    "ngram": "ngram",
    "ngram_gpu": "ngram",
    "medusa": "medusa",
    "mlp_speculator": "mlp_speculator",
    "draft_model": "draft_model",
    "suffix": "suffix",
    "custom_class": "custom_class",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "extract_hidden_states": "extract_hidden_states",
    "mtp": "mtp",
    "dflash": "dflash",
    "dspark": "dspark",
} | dict.fromkeys(sorted(MTP_ALIASES), "mtp")

NGRAM = frozenset({"ngram", "ngram_gpu"})
MODEL_FREE = NGRAM | {"suffix", "custom_class", "extract_hidden_states"}
LOAD_CONFIG_KEYS = tuple(
    (
        "load_format download_dir safetensors_load_strategy safetensors_prefetch_num_threads "
        "safetensors_prefetch_block_size model_loader_extra_config device ignore_patterns use_tqdm_on_load "
        "pt_load_map_location"
    ).split()
)


def _load_schedule(entries: Any) -> tuple[ScheduleStep, ...]:
    return tuple(ScheduleStep(*entry) for entry in entries)


def _dump_schedule(steps: Any) -> list[list[int]]:
    return [
        [step.first, step.last if step.last is not None else 1 << 20, step.num_speculative_tokens] for step in steps
    ]


def _auto_is_unset(name: Any) -> Any:
    return None if isinstance(name, str) and name.lower() == "auto" else name


ROWS: tuple[Field, ...] = (
    Field("method", None, doc="how tokens are drafted; unset: told from the model's name and type"),
    Field("model", "model", doc="the draft: id, folder, `ngram`, or the dotted path of a proposer class"),
    Field(
        "num_speculative_tokens",
        "num_speculative_tokens",
        "int",
        nullable=False,
        minimum=1,
        doc="drafted tokens a step and request",
    ),
    Field(
        "prompt_lookup_max",
        "method.prompt_lookup_max",
        "int",
        minimum=1,
        doc="longest suffix that is looked up, in tokens",
    ),
    Field(
        "prompt_lookup_min",
        "method.prompt_lookup_min",
        "int",
        minimum=1,
        doc="shortest suffix that is looked up, in tokens",
    ),
    Field(
        "draft_tensor_parallel_size", "draft.tensor_parallel_size", "int", minimum=1, doc="1 or the target's own size"
    ),
    Field(
        "tensor_parallel_size", None, "int", doc="a trap: any value is refused; `draft_tensor_parallel_size` is the key"
    ),
    Field("quantization", "draft.quantization", dump=vllm_quantization, doc="quantization of the draft"),
    Field("max_model_len", "draft.max_model_len", "int", minimum=1, doc="context limit of the draft, in tokens"),
    Field("revision", "draft.revision", doc="revision of the draft's repository"),
    Field("code_revision", "draft.code_revision", doc="revision of the draft's code"),
    Field("enforce_eager", "draft.enforce_eager", "bool", doc="no CUDA graphs for the draft"),
    Field("moe_backend", "draft.moe_backend", choices=MOE_BACKENDS, doc="expert kernels of the draft"),
    Field(
        "attention_backend",
        "draft.attention_backend",
        load=_auto_is_unset,
        dump=vllm_attention,
        doc="attention kernels of the draft",
    ),
    Field(
        "kv_cache_dtype",
        "draft.kv_cache_dtype",
        choices=KV_DTYPES,
        dump=vllm_cache,
        doc="number format of the draft's cache",
    ),
    Field("draft_load_config", None, "object", doc="how the draft's weights are loaded"),
    Field(
        "draft_sample_method",
        "draft_sample_method",
        nullable=False,
        choices=("greedy", "probabilistic"),
        default="greedy",
        doc="how the draft picks its tokens",
    ),
    Field(
        "rejection_sample_method",
        "acceptance.method",
        nullable=False,
        choices=("standard", "synthetic", "block"),
        default="standard",
        doc="how drafted tokens are verified",
    ),
    Field(
        "synthetic_acceptance_rates",
        "acceptance.synthetic_rates",
        "floats",
        doc="forced rate of each place, for measurements",
    ),
    Field(
        "synthetic_acceptance_length",
        "acceptance.synthetic_length",
        "float",
        doc="forced tokens a step, bonus included",
    ),
    Field(
        "num_speculative_tokens_per_batch_size",
        "schedule",
        "triples",
        load=_load_schedule,
        dump=_dump_schedule,
        doc="draft length by batch size: [first, last, k]",
    ),
    Field(
        "parallel_drafting",
        "method.parallel_drafting",
        "bool",
        nullable=False,
        default=False,
        doc="all tokens of a step in one draft forward",
    ),
    Field(
        "use_heterogeneous_vocab",
        "method.heterogeneous_vocab",
        "bool",
        nullable=False,
        default=False,
        doc="draft and target may have different vocabularies",
    ),
    Field(
        "suffix_decoding_max_tree_depth",
        "method.max_tree_depth",
        "int",
        nullable=False,
        minimum=1,
        default=24,
        unchecked=True,
        doc="depth of the suffix tree, in tokens",
    ),
    Field(
        "suffix_decoding_max_cached_requests",
        "method.max_cached_requests",
        "int",
        nullable=False,
        minimum=0,
        default=10000,
        unchecked=True,
        doc="requests kept in the global tree; 0: none",
    ),
    Field(
        "suffix_decoding_max_spec_factor",
        "method.max_spec_factor",
        "float",
        nullable=False,
        minimum=0,
        default=1.0,
        unchecked=True,
        doc="drafted tokens per matched token",
    ),
    Field(
        "suffix_decoding_min_token_prob",
        "method.min_token_prob",
        "float",
        nullable=False,
        minimum=0,
        maximum=1,
        default=0.1,
        unchecked=True,
        doc="least estimated probability of a drafted token",
    ),
    Field(
        "disable_padded_drafter_batch",
        None,
        "bool",
        nullable=False,
        doc="drafts without padding; turns async scheduling off",
    ),
    Field("disable_eagle_block_drop", None, "bool", nullable=False, doc="keep the last prefix-cache block"),
    Field("use_local_argmax_reduction", None, "bool", nullable=False, doc="greedy drafting without gathering logits"),
    Field("index_share_for_mtp_iteration", None, "bool", doc="share indexer results between MTP iterations"),
    Field(
        "enable_adaptive_verification",
        None,
        "bool",
        nullable=False,
        doc="verify fewer tokens where the draft is unsure",
    ),
    Field("dspark_draft_topk", "method.draft_topk", "int", minimum=1, doc="candidates a place of a DSpark draft"),
    Field("draft_model_config", None, "any", doc="internal; carries the layer ids of extract_hidden_states"),
    Field("target_model_config", None, "any", doc="internal; overwritten by the engine"),
    Field("target_parallel_config", None, "any", doc="internal; overwritten by the engine"),
    Field("draft_parallel_config", None, "any", doc="internal"),
)

# Keys of older releases: what took their place (None: nothing did).
REMOVED_KEYS: dict[str, str | None] = {
    "disable_by_batch_size": "num_speculative_tokens_per_batch_size",
    "speculative_disable_by_batch_size": "num_speculative_tokens_per_batch_size",
    "disable_mqa_scorer": None,
    "acceptance_method": None,
    "posterior_threshold": None,
    "posterior_alpha": None,
    "disable_logprobs": None,
    "speculative_token_tree": None,
    "synthetic_acceptance_rate": "synthetic_acceptance_rates",
    "ngram_prompt_lookup_max": "prompt_lookup_max",
    "ngram_prompt_lookup_min": "prompt_lookup_min",
    "speculative_model": "model",
    "draft_tp": "draft_tensor_parallel_size",
    "target_model": None,
    "num_spec_tokens": "num_speculative_tokens",
    "draft_max": "num_speculative_tokens",
    "prompt_lookup_num_tokens": "num_speculative_tokens",
    "assistant_model": "model",
    "draft_model": "model",
    "max_tree_depth": "suffix_decoding_max_tree_depth",
    "enable_suffix_decoding": "method",
    "tokenizer": None,
}

# Flags of older releases: the key that took their place.
REMOVED_FLAGS: dict[str, str | None] = {
    "--speculative-model": "model",
    "--num-speculative-tokens": "num_speculative_tokens",
    "--speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "-spec-draft-tp": "draft_tensor_parallel_size",
    "--speculative-model-quantization": "quantization",
    "--speculative-max-model-len": "max_model_len",
    "--speculative-disable-by-batch-size": "num_speculative_tokens_per_batch_size",
    "--speculative-disable-mqa-scorer": None,
    "--ngram-prompt-lookup-max": "prompt_lookup_max",
    "--ngram-prompt-lookup-min": "prompt_lookup_min",
    "--spec-decoding-acceptance-method": None,
    "--typical-acceptance-sampler-posterior-threshold": None,
    "--typical-acceptance-sampler-posterior-alpha": None,
    "--disable-logprobs-during-spec-decoding": None,
    "--use-v2-block-manager": None,
    "--num-lookahead-slots": None,
}


def cut_off(limit: Any) -> str:
    """The schedule that stops drafting from a batch size on, as the old cut-off did."""
    size = limit if isinstance(limit, int) and limit > 1 else 32
    schedule = f'"num_speculative_tokens_per_batch_size": [[1, {size - 1}, K], [{size}, 4096, 0]]'
    return f"it ends drafting above a batch size; write {schedule} with K = num_speculative_tokens"


def write(spec: SpecDecodeConfig, release: str) -> dict[str, Any]:
    """The `--speculative-config` object of a spec. Values without a counterpart are left out; `convert` names them."""
    found: dict[str, Any] = {}
    method = native_method(spec)
    if method is not None:
        found["method"] = method
    own = type(spec.method)
    for row in ROWS:
        if row.path is None or not row.in_release(release) or not has_path(own, row.path):
            continue
        value = read_path(spec, row.path)
        if value is None or (value == default_at(spec, row.path) and row.path not in _ALWAYS):
            continue
        value = row.dump(value) if row.dump else value
        if value in ((), [], None) or (row.choices and value not in row.choices):
            continue
        found[row.key] = list(value) if isinstance(value, tuple) else value
    _special(spec, found)
    return found | dict(spec.engine_options.get(ENGINE, {}))


_ALWAYS = frozenset({"method.prompt_lookup_min", "method.prompt_lookup_max", "num_speculative_tokens"})


def native_method(spec: SpecDecodeConfig) -> str | None:
    """vLLM's name of the spec's method; None where it has none."""
    name = spec.method.name
    if name == "ngram":
        return "ngram_gpu" if getattr(spec.method, "on_device", False) else "ngram"
    if name == "pard":
        return "draft_model"
    return name if name in METHOD_NAMES and name in METHODS else None


def _special(spec: SpecDecodeConfig, found: dict[str, Any]) -> None:
    if spec.method.name == "pard":
        found["parallel_drafting"] = True
    if spec.draft.load_format is not None:
        found["draft_load_config"] = {"load_format": spec.draft.load_format}
    layers = getattr(spec.method, "aux_layers", None)
    if spec.method.name == "extract_hidden_states" and layers:
        found["draft_model_config"] = {"hf_config": {"eagle_aux_hidden_state_layer_ids": list(layers)}}
