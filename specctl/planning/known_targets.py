"""The sizes of models that people plan for, so that a plan needs no download.

Rows hold what their config.json says of sizes (Hugging Face, read from aiconfigurator's, litgpt's, MaxText's and
tt-metal's stored copies); the tests hold them to the published parameter counts."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def _row(
    kind: str, layers: int, hidden: int, heads: int, kv: int, size: int, inner: int, vocab: int, limit: int, **more: Any
) -> Row:
    return {
        "model_type": kind,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": size,
        "intermediate_size": inner,
        "vocab_size": vocab,
        "max_position_embeddings": limit,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    } | more


def _qwen3(layers: int, hidden: int, heads: int, inner: int, tied: bool = False, kv: int = 8, **more: Any) -> Row:
    kind = "qwen3_moe" if "num_experts" in more else "qwen3"
    return _row(kind, layers, hidden, heads, kv, 128, inner, 151936, 40960, tie_word_embeddings=tied, **more)


def _gemma(kind: str, layers: int, hidden: int, heads: int, kv: int, size: int, inner: int, **more: Any) -> Row:
    limit = more.pop("limit", 131072)
    every = more.pop("every", 6)
    return _row(
        kind, layers, hidden, heads, kv, size, inner, 262144, limit, tie_word_embeddings=True,
        sliding_window_pattern=every, **more,
    )  # fmt: skip


def _gemma4(layers: int, hidden: int, heads: int, kv: int, wide: int | None, inner: int, **more: Any) -> Row:
    return _gemma(
        "gemma4_text", layers, hidden, heads, kv, 256, inner, global_head_dim=512, num_global_key_value_heads=wide,
        attention_k_eq_v=wide is not None, **more,
    )  # fmt: skip


def _hybrid(kind: str, layers: int, hidden: int, heads: int, kv: int, values: int, inner: int, **more: Any) -> Row:
    """Three gated delta layers, then one of full attention."""
    mtp = {} if kind == "qwen3_next" else {"mtp_num_hidden_layers": 1, "mamba_ssm_dtype": "float32"}
    vocab = more.pop("vocab", 248320)
    return _row(
        kind, layers, hidden, heads, kv, 256, inner, vocab, 262144, full_attention_interval=4, attn_output_gate=True,
        linear_num_value_heads=values, linear_num_key_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
        linear_conv_kernel_dim=4, **mtp, **more,
    )  # fmt: skip


def _experts(count: int, used: int, inner: int, shared: int | None = None) -> Row:
    found = {"num_experts": count, "num_experts_per_tok": used, "moe_intermediate_size": inner}
    return found | ({} if shared is None else {"shared_expert_intermediate_size": shared})


def _latent(heads: int, experts: int, dense: int, vocab: int, limit: int, mtp: int, **more: Any) -> Row:
    """DeepSeek-V3's layer: latent attention and one shared expert."""
    return _row(
        more.pop("kind", "deepseek_v3"), 61, 7168, heads, heads, 128, 18432, vocab, limit, kv_lora_rank=512,
        q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=experts,
        num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=dense,
        num_nextn_predict_layers=mtp, **more,
    )  # fmt: skip


def _gpt_oss(layers: int, experts: int) -> Row:
    return _row(
        "gpt_oss", layers, 2880, 64, 8, 64, 2880, 201088, 131072, sliding_window=128, attention_bias=True,
        num_local_experts=experts, num_experts_per_tok=4, quantization_config={"quant_method": "mxfp4"},
    )  # fmt: skip


def _step(kind: str, vocab: int) -> Row:
    kinds = ["full_attention" if number % 4 == 0 else "sliding_attention" for number in range(45)]
    return _row(
        kind, 45, 4096, 64, 8, 128, 11264, vocab, 262144, layer_types=kinds, sliding_window=512, num_experts=288,
        num_experts_per_tok=8, moe_intermediate_size=1280, share_expert_dim=1280, first_k_dense_replace=3,
        num_nextn_predict_layers=3,
    )  # fmt: skip


def _fp8() -> Row:
    return {"quantization_config": {"quant_method": "fp8"}}


def _four_bits(kind: str, group: int, ignore: list[str], algorithm: str, kv: bool) -> Row:
    weights = {"num_bits": 4, "group_size": group, "type": kind}
    found: Row = {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, "ignore": ignore}
    found |= {"quant_method": "compressed-tensors", "quant_algo": algorithm}
    return {"quantization_config": found | ({"kv_cache_scheme": {"num_bits": 8}} if kv else {})}


_PLAIN = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"]
LLAMA_8B = _row("llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072)
LLAMA_70B = _row("llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072)
QWEN3_32B = _qwen3(64, 5120, 64, 25600)
QWEN3_30B = _qwen3(48, 2048, 32, 6144, kv=4, **_experts(128, 8, 768))
QWEN3_235B = _qwen3(94, 4096, 64, 12288, kv=4, **_experts(128, 8, 1536))
QWEN3_NEXT = _hybrid("qwen3_next", 48, 2048, 16, 2, 32, 5120, vocab=151936, **_experts(512, 10, 512, 512))
QWEN35_27B = _hybrid("qwen3_5_text", 64, 5120, 24, 4, 48, 17408)
QWEN35_35B = _hybrid("qwen3_5_moe_text", 40, 2048, 16, 2, 32, 512, **_experts(256, 8, 512, 512))
MISTRAL_24B = _row("mistral", 40, 5120, 32, 8, 128, 32768, 131072, 32768)
MIMO_7B = _row("mimo", 36, 4096, 32, 8, 128, 11008, 151680, 32768, attention_bias=True, num_nextn_predict_layers=1)
DEEPSEEK_V3 = _latent(128, 256, 3, 129280, 163840, 1, **_fp8())
KIMI_INT4 = _latent(64, 384, 1, 163840, 262144, 0, kind="kimi_k2", **_four_bits("int", 32, _PLAIN, "int4", False))
KIMI_NVFP4 = _latent(64, 384, 1, 163840, 262144, 0, kind="kimi_k2", **_four_bits("float", 16, _PLAIN, "NVFP4", True))
GEMMA_31B = _gemma4(60, 5376, 32, 16, 4, 21504, sliding_window=1024, limit=262144)
_GEMMA_IGNORE = ["lm_head", "re:.*self_attn.*"]

TARGETS: dict[str, Row] = {
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA_8B,
    "meta-llama/Llama-3.1-8B": LLAMA_8B,
    "meta-llama/Llama-3.1-70B-Instruct": LLAMA_70B,
    "meta-llama/Llama-3.3-70B-Instruct": LLAMA_70B,
    "nvidia/Llama-3.3-70B-Instruct-FP8": LLAMA_70B | _fp8(),
    "Qwen/Qwen3-0.6B": _qwen3(28, 1024, 16, 3072, tied=True),
    "Qwen/Qwen3-1.7B": _qwen3(28, 2048, 16, 6144, tied=True),
    "Qwen/Qwen3-4B": _qwen3(36, 2560, 32, 9728, tied=True),
    "Qwen/Qwen3-4B-Thinking-2507": _qwen3(36, 2560, 32, 9728, tied=True, max_position_embeddings=None),
    "Qwen/Qwen3-8B": _qwen3(36, 4096, 32, 12288),
    "Qwen/Qwen3-14B": _qwen3(40, 5120, 40, 17408),
    "Qwen/Qwen3-32B": QWEN3_32B,
    "Qwen/Qwen3-32B-FP8": QWEN3_32B | _fp8(),
    "Qwen/Qwen3-30B-A3B": QWEN3_30B,
    "Qwen/Qwen3-30B-A3B-Instruct-2507": QWEN3_30B | {"max_position_embeddings": None},
    "Qwen/Qwen3-235B-A22B": QWEN3_235B,
    "Qwen/Qwen3-235B-A22B-Instruct-2507": QWEN3_235B | {"max_position_embeddings": None},
    "Qwen/Qwen3-Next-80B-A3B-Instruct": QWEN3_NEXT,
    "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8": QWEN3_NEXT | _fp8(),
    "Qwen/Qwen3.5-27B": QWEN35_27B,
    "Qwen/Qwen3.5-35B-A3B": QWEN35_35B,
    "Qwen/Qwen3.5-122B-A10B": _hybrid("qwen3_5_moe_text", 48, 3072, 32, 2, 64, 1024, **_experts(256, 8, 1024, 1024)),
    "Qwen/Qwen3.5-397B-A17B": _hybrid("qwen3_5_moe_text", 60, 4096, 32, 2, 64, 1024, **_experts(512, 10, 1024, 1024)),
    "Qwen/Qwen3.6-27B": QWEN35_27B,
    "Qwen/Qwen3.6-35B-A3B": QWEN35_35B,
    "Qwen/Qwen3.8-27B": QWEN35_27B,
    "Qwen/Qwen3.8-2.4T-A95B": _hybrid("qwen3_5_moe_text", 92, 8192, 64, 4, 128, 2048, **_experts(512, 10, 2048)),
    "HuggingFaceTB/SmolLM2-135M": _row("llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, tie_word_embeddings=True),
    "HuggingFaceTB/SmolLM2-360M": _row("llama", 32, 960, 15, 5, 64, 2560, 49152, 8192, tie_word_embeddings=True),
    "HuggingFaceTB/SmolLM2-1.7B": _row("llama", 24, 2048, 32, 32, 64, 8192, 49152, 8192, tie_word_embeddings=True),
    "mistralai/Mistral-Small-24B-Instruct-2501": MISTRAL_24B,
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": MISTRAL_24B | {"max_position_embeddings": 131072},
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": MISTRAL_24B | {"max_position_embeddings": 131072},
    "XiaomiMiMo/MiMo-7B-Base": MIMO_7B,
    "XiaomiMiMo/MiMo-7B-RL": MIMO_7B,
    "google/gemma-3-1b-it": _gemma("gemma3_text", 26, 1152, 4, 1, 256, 6912, sliding_window=512, limit=None),
    "google/gemma-3-4b-it": _gemma("gemma3_text", 34, 2560, 8, 4, 256, 10240, sliding_window=1024),
    "google/gemma-3-12b-it": _gemma("gemma3_text", 48, 3840, 16, 8, 256, 15360, sliding_window=1024),
    "google/gemma-3-27b-it": _gemma("gemma3_text", 62, 5376, 32, 16, 128, 21504, sliding_window=1024),
    "google/gemma-4-E2B-it": _gemma4(
        35, 1536, 8, 1, None, 6144, sliding_window=512, every=5, num_kv_shared_layers=20, use_double_wide_mlp=True,
        hidden_size_per_layer_input=256, vocab_size_per_layer_input=262144,
    ),
    "google/gemma-4-E4B-it": _gemma4(
        42, 2560, 8, 2, None, 10240, sliding_window=512, num_kv_shared_layers=18,
        hidden_size_per_layer_input=256, vocab_size_per_layer_input=262144,
    ),
    "google/gemma-4-12B-it": _gemma4(48, 3840, 16, 8, 1, 15360, sliding_window=1024, limit=None),
    "google/gemma-4-26B-A4B-it": _gemma4(
        30, 2816, 16, 8, 2, 2112, sliding_window=1024, limit=None, enable_moe_block=True, num_experts=128,
        top_k_experts=8, moe_intermediate_size=704,
    ),
    "google/gemma-4-31B-it": GEMMA_31B,
    "nvidia/Gemma-4-31B-IT-NVFP4": GEMMA_31B | _four_bits("float", 16, _GEMMA_IGNORE, "NVFP4", True),
    "openai/gpt-oss-20b": _gpt_oss(24, 32),
    "openai/gpt-oss-120b": _gpt_oss(36, 128),
    "deepseek-ai/DeepSeek-V3": DEEPSEEK_V3,
    "deepseek-ai/DeepSeek-R1": DEEPSEEK_V3,
    "moonshotai/Kimi-K2-Instruct": _latent(64, 384, 1, 163840, 131072, 0, kind="kimi_k2", **_fp8()),
    "moonshotai/Kimi-K2-Thinking": KIMI_INT4,
    "moonshotai/Kimi-K2.5": KIMI_INT4,
    "moonshotai/Kimi-K2.6": KIMI_INT4,
    "nvidia/Kimi-K2.6-NVFP4": KIMI_NVFP4,
    "moonshotai/Kimi-K2.7-Code": KIMI_INT4,
    "nvidia/Kimi-K2.7-Code-NVFP4": KIMI_NVFP4,
    "stepfun-ai/Step-3.5-Flash": _step("step3p5", 128896),
    "stepfun-ai/Step-3.7-Flash": _step("step3p7", 128896),
    "zai-org/GLM-4.5": _row(
        "glm4_moe", 92, 5120, 96, 8, 128, 12288, 151552, 131072, attention_bias=True, n_routed_experts=160,
        num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=1536, first_k_dense_replace=3,
        num_nextn_predict_layers=1,
    ),
    "zai-org/GLM-4.5-Air": _row(
        "glm4_moe", 46, 4096, 96, 8, 128, 10944, 151552, 131072, attention_bias=True, n_routed_experts=128,
        num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=1408, first_k_dense_replace=1,
        num_nextn_predict_layers=1,
    ),
}  # fmt: skip
TARGETS |= {f"{name}-Instruct": row for name, row in TARGETS.items() if "SmolLM2" in name}

# What a row does not take from the model's own config.json.
DOUBTS: dict[str, str] = {
    "Qwen/Qwen3.8-27B": "text shape taken from Qwen3.5-27B, whose layer split it shares",
    "Qwen/Qwen3.6-27B": "text shape taken from nvidia/Qwen3.6-27B-NVFP4",
    "Qwen/Qwen3.6-35B-A3B": "text shape taken from nvidia/Qwen3.6-35B-A3B-NVFP4",
    "Qwen/Qwen3.8-2.4T-A95B": "only its planning keys are published; no shared expert, untied embeddings",
    "stepfun-ai/Step-3.5-Flash": "vocabulary of 128896 taken from Step-3.7-Flash",
    "zai-org/GLM-4.5": "experts as in GLM-4.6, which has the same architecture",
    "zai-org/GLM-4.5-Air": "vocabulary and width of the one dense layer taken from its family",
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": "text part; the vision tower is not counted",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": "text part; the vision tower is not counted",
}
# Models people ask for whose sizes no public file tells.
WITHOUT_SHAPE: dict[str, str] = {
    "mistralai/Mistral-Small-4-119B-2603": "119B parameters, 6.5B active; layers and heads are not published",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": "its layers are not in the public files this table was made of",
    "MiniMaxAI/MiniMax-M3": "its layers are not in the public files this table was made of",
    "moonshotai/Kimi-K3": "its recurrent layers are of a kind whose memory the planner does not know",
}
