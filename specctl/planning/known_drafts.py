"""Published drafts: their sizes, the k they are run with, and the acceptance lengths their makers or others measured.

`published` maps a data set to {k: mean acceptance length}, the bonus token included. A head is bound to one target; a
size without a config is that of the model card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Lengths = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class KnownDraft:
    """One row. `config`: sizes as in a config.json; without it `parameters`, and `elements` a token of cache in
    `heads` key-value heads. `k`: as recommended; `max_k`: no more than that.
    """

    method: str
    target: str
    config: Mapping[str, Any] | None = None
    own_embedding: bool = False
    parameters: int = 0
    elements: int = 0
    heads: int = 1
    layers: int = 1
    k: int | None = None
    max_k: int | None = None
    published: Lengths = field(default_factory=dict)
    source: str = ""


def _head(hidden: int, heads: int, kv: int, size: int, inner: int, vocab: int, rows: int = 32000, **more: Any) -> Any:
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": size,
        "intermediate_size": inner,
        "vocab_size": vocab,
        "draft_vocab_size": rows,
        "torch_dtype": "bfloat16",
    } | more


def _assistant(target: str, k: int, config: Any = None, parameters: int = 0) -> KnownDraft:
    return KnownDraft("mtp", target, config, parameters=parameters, layers=4, k=k, source="vLLM recipes")


def _mla(target: str, parameters: int, k: int, published: Lengths, source: str) -> KnownDraft:
    return KnownDraft(
        "eagle3", target, parameters=parameters, elements=576, k=k, published=published, source=source
    )  # fmt: skip


_LLAMA_8B = _head(4096, 32, 8, 128, 14336, 128256)
_LLAMA_70B = _head(8192, 64, 8, 128, 28672, 128256)
_GPT_OSS_120B = _head(2880, 64, 8, 64, 17280, 201088)
_GPT_OSS_20B = _head(2880, 64, 8, 64, 17280, 201088)
_QWEN3_30B = _head(2048, 32, 4, 128, 12288, 151936)
_QWEN3_235B = _head(4096, 64, 4, 128, 24576, 151936)
_QWEN3_NEXT = _head(2048, 16, 2, 256, 16384, 151936)
_SPECBUNDLE = "SpecForge's SpecBundle, SGLang, topk 1"
_BLOG_MARCH = "vLLM blog of 13 March 2026, B200"


def _qwen3(hidden: int, heads: int, inner: int) -> Any:
    return _head(hidden, heads, 8, 128, inner, 151936)


DRAFTS: dict[str, KnownDraft] = {
    "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3": KnownDraft(
        "eagle3", "meta-llama/Llama-3.1-8B-Instruct", _LLAMA_8B, own_embedding=True, k=3,
        published={
            "HumanEval": {3: 3.02, 7: 3.89}, "GSM8K": {3: 2.83, 7: 3.83}, "CNN/DailyMail": {3: 2.50, 7: 2.99},
        },
        source="the model card",
    ),
    "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B": KnownDraft(
        "eagle3", "meta-llama/Llama-3.1-8B-Instruct", _LLAMA_8B, k=3,
        published={"MT-Bench": {7: 3.535}}, source="vLLM's own measurement: 12208 accepted in 4816 drafts",
    ),
    "lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge": KnownDraft(
        "eagle3", "meta-llama/Llama-3.1-8B-Instruct", _LLAMA_8B, k=3,
        published={
            "MT-Bench": {3: 2.90, 5: 3.52, 7: 3.86}, "HumanEval": {3: 3.34, 5: 4.32, 7: 4.91},
            "GSM8K": {3: 2.55, 5: 2.85, 7: 2.97},
        },
        source=_SPECBUNDLE,
    ),
    "ibm-ai-platform/llama3-8b-accelerator": KnownDraft(
        "mlp_speculator", "meta-llama/Llama-3.1-8B-Instruct",
        {
            "architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator", "emb_dim": 4096,
            "inner_dim": 3072, "n_predict": 4, "vocab_size": 128256, "torch_dtype": "float16",
        },
        k=4, max_k=4, source="its config.json",
    ),
    "RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3": KnownDraft(
        "eagle3", "meta-llama/Llama-3.3-70B-Instruct", _LLAMA_70B, own_embedding=True, k=3,
        published={"MT-Bench": {7: 2.88}, "HumanEval": {7: 3.62}, "GSM8K": {7: 3.29}},
        source="measured by Nebius at temperature 1",
    ),
    "nvidia/Llama-3.3-70B-Instruct-Eagle3": KnownDraft(
        "eagle3", "meta-llama/Llama-3.3-70B-Instruct", _head(8192, 64, 8, 128, 28672, 128256, 128256),
        own_embedding=True, k=3, source="the model card",
    ),
    "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B": KnownDraft(
        "eagle3", "meta-llama/Llama-3.3-70B-Instruct", _LLAMA_70B, k=3, source="SpecForge's template"
    ),
    "lmsys/SGLang-EAGLE3-Llama-3.3-70B-Instruct-SpecForge": KnownDraft(
        "eagle3", "meta-llama/Llama-3.3-70B-Instruct", _LLAMA_70B, k=3,
        published={"MT-Bench": {3: 2.96, 5: 3.62, 7: 3.98}}, source=_SPECBUNDLE,
    ),
    "nebius/EAGLE3-Llama-3.3-70B-Instruct": KnownDraft(
        "eagle3", "meta-llama/Llama-3.3-70B-Instruct", _LLAMA_70B, k=6,
        published={"MT-Bench": {7: 3.89}, "HumanEval": {7: 5.08}, "GSM8K": {7: 5.01}},
        source="the model card, temperature 1",
    ),
    "nvidia/gpt-oss-120b-Eagle3-short-context": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", _head(2880, 64, 8, 64, 17280, 201088, 201088), k=3,
        published={"math": {3: 2.75}, "coding": {3: 2.67}, "reasoning": {3: 2.57}, "writing": {3: 2.10}},
        source="the model card, MT-Bench on TensorRT-LLM",
    ),
    "nvidia/gpt-oss-120b-Eagle3-long-context": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", parameters=215_000_000, elements=1024, heads=8, k=3,
        published={"MT-Bench": {3: 2.224}}, source="SGLang pull request 32334, two H200",
    ),
    "nvidia/gpt-oss-120b-Eagle3-throughput": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", parameters=215_000_000, elements=1024, heads=8, k=1, max_k=1,
        source="the model card (size taken from the long-context head)",
    ),
    "nvidia/gpt-oss-120b-Eagle3-v3": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", _head(2880, 64, 8, 64, 17280, 201088, 201088), k=7,
        published={"MT-Bench": {3: 2.680}},
        source="SGLang pull request 32334, two H200 (size taken from the short-context head)",
    ),
    "lmsys/EAGLE3-gpt-oss-120b-bf16": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", _GPT_OSS_120B, k=3, source="SpecForge's template"
    ),
    "RedHatAI/gpt-oss-120b-speculator.eagle3": KnownDraft(
        "eagle3", "openai/gpt-oss-120b", _GPT_OSS_120B, k=5, source="SpecForge's template"
    ),
    "RedHatAI/gpt-oss-20b-speculator.eagle3": KnownDraft(
        "eagle3", "openai/gpt-oss-20b", _head(2880, 64, 8, 64, 17280, 201088, 64000), k=3,
        published={
            "HumanEval": {3: 2.65, 7: 3.03}, "SPEED-Bench": {3: 2.24, 7: 2.59}, "MT-Bench": {3: 2.70, 7: 3.27},
        },
        source=_BLOG_MARCH,
    ),
    "amazon/GPT-OSS-20B-P-EAGLE": KnownDraft(
        "eagle3", "openai/gpt-oss-20b",
        _GPT_OSS_20B | {"architectures": ["PEagleDraftModel"], "num_hidden_layers": 4}, k=7, max_k=10,
        published={
            "HumanEval": {3: 3.02, 7: 3.94}, "SPEED-Bench": {3: 2.87, 7: 3.38}, "MT-Bench": {3: 2.87, 7: 3.70},
        },
        source=_BLOG_MARCH,
    ),
    "nebius/EAGLE3-gpt-oss-20b": KnownDraft(
        "eagle3", "openai/gpt-oss-20b", _GPT_OSS_20B, k=6,
        published={"HumanEval": {7: 3.20}, "SPEED-Bench": {7: 3.01}, "MT-Bench": {7: 3.65}},
        source="the model card, temperature 1",
    ),
    "Dogacel/specdrift-gpt-oss-20b-eagle3": KnownDraft(
        "eagle3", "openai/gpt-oss-20b", _GPT_OSS_20B, k=3, published={"MT-Bench": {3: 2.347}},
        source="the model card",
    ),
    "lightseekorg/kimi-k2.6-eagle3.1-mla": _mla(
        "nvidia/Kimi-K2.6-NVFP4", 3_000_000_000, 3,
        {
            "SPEED-Bench coding": {3: 3.013}, "SPEED-Bench math": {3: 3.403}, "SPEED-Bench multilingual": {3: 2.800},
            "SPEED-Bench QA": {3: 2.580}, "SPEED-Bench RAG": {3: 3.045}, "MT-Bench": {3: 2.611},
        },
        "the model card and the vLLM blog of 26 May 2026",
    ),
    "lightseekorg/kimi-k2.6-eagle3-mla": _mla(
        "moonshotai/Kimi-K2.6", 3_000_000_000, 3,
        {"MT-Bench": {3: 2.624}, "GSM8K": {3: 2.987}, "HumanEval": {3: 3.241}}, "the model card, vLLM on 8 B200",
    ),
    "lightseekorg/kimi-k2.5-eagle3-mla": _mla(
        "moonshotai/Kimi-K2.5", 3_000_000_000, 3,
        {"MT-Bench": {3: 2.940}, "GSM8K": {3: 3.017}, "HumanEval": {3: 2.969}}, "the model card",
    ),
    "lightseekorg/kimi-k2.7-coder-eagle3.1-mla": _mla(
        "moonshotai/Kimi-K2.7-Code", 3_000_000_000, 3,
        {"MT-Bench": {3: 2.345}, "GSM8K": {3: 2.947}, "HumanEval": {3: 2.544}}, "the model card, SGLang",
    ),
    "AQ-MedAI/Kimi-K2-Instruct-eagle3": _mla(
        "moonshotai/Kimi-K2-Instruct", 1_800_000_000, 3, {}, "its target (size taken from NVIDIA's head for Kimi-K2.6)"
    ),
    "AQ-MedAI/Kimi-K26-eagle3": _mla(
        "moonshotai/Kimi-K2.6", 1_800_000_000, 3,
        {"HumanEval": {3: 3.217}, "SWE-bench Verified": {3: 2.553}, "GSM8K": {3: 3.172}},
        "the model card (size taken from NVIDIA's head)",
    ),
    "nvidia/Kimi-K2.6-Eagle3": _mla(
        "moonshotai/Kimi-K2.6", 1_800_000_000, 3, {"MT-Bench": {3: 2.62}, "SPEED-Bench": {3: 2.67}}, "the model card"
    ),
    "nvidia/Kimi-K2.5-Thinking-Eagle3": _mla("moonshotai/Kimi-K2.5", 1_800_000_000, 3, {}, "the model card"),
    "AQ-MedAI/Qwen3.5-397B-A17B-eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3.5-397B-A17B", _head(4096, 32, 2, 256, 16384, 248320), k=3,
        published={"MT-Bench": {3: 3.03}, "GSM8K": {3: 3.40}, "HumanEval": {3: 3.47}},
        source="the model card (size after SpecForge's template for the family)",
    ),
    "RedHatAI/Qwen3-8B-speculator.eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-8B", _qwen3(4096, 32, 12288), k=5, source="its config.json"
    ),
    "RedHatAI/Qwen3-14B-speculator.eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-14B", _qwen3(5120, 40, 17408), k=3, source="the shape of its target"
    ),
    "RedHatAI/Qwen3-32B-speculator.eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-32B", _qwen3(5120, 64, 25600), k=3, source="the shape of its target"
    ),
    "RedHatAI/Qwen3-8B-speculator.dflash": KnownDraft(
        "dflash", "Qwen/Qwen3-8B",
        _qwen3(4096, 32, 12288)
        | {
            "architectures": ["DFlashDraftModel"], "num_hidden_layers": 5, "block_size": 8,
            "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
        },
        k=7, max_k=7, source="its config.json",
    ),
    "RedHatAI/Qwen3-8B-speculator.dflash2": KnownDraft(
        "dflash", "Qwen/Qwen3-8B",
        _qwen3(4096, 32, 12288)
        | {
            "architectures": ["DFlashDraftModel"], "num_hidden_layers": 8, "block_size": 16,
            "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34],
        },
        k=15, max_k=15, source="the model card (taps of the first DFlash head)",
    ),
    "RedHatAI/Qwen3-30B-A3B-Instruct-2507-speculator.eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-30B-A3B-Instruct-2507", _QWEN3_30B, own_embedding=True, k=3, source="SpecForge's template"
    ),
    "lmsys/SGLang-EAGLE3-Qwen3-30B-A3B-Instruct-2507-SpecForge-Nex": KnownDraft(
        "eagle3", "Qwen/Qwen3-30B-A3B-Instruct-2507", _QWEN3_30B, k=3,
        published={"MT-Bench": {3: 2.496, 5: 2.831, 7: 2.982}, "HumanEval": {3: 3.349, 5: 4.384, 7: 5.124}},
        source=_SPECBUNDLE,
    ),
    "lmsys/SGLang-EAGLE3-Qwen3-235B-A22B-Instruct-2507-SpecForge-Meituan": KnownDraft(
        "eagle3", "Qwen/Qwen3-235B-A22B-Instruct-2507", _QWEN3_235B, k=3, source="SpecForge's template"
    ),
    "lmsys/SGLang-EAGLE3-Qwen3-Next-80B-A3B-Instruct-FP8-perfect-blend-regenerated": KnownDraft(
        "eagle3", "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", _QWEN3_NEXT, k=3, source="SpecForge's template"
    ),
    "AngelSlim/Qwen3-1.7B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-1.7B", _qwen3(2048, 16, 6144), k=3, source="AngelSlim's training config"
    ),
    "AngelSlim/Qwen3-4B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-4B", _qwen3(2560, 32, 9728), k=3, source="AngelSlim's training config"
    ),
    "AngelSlim/Qwen3-8B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-8B", _qwen3(4096, 32, 12288), k=3, source="AngelSlim's training config"
    ),
    "AngelSlim/Qwen3-14B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-14B", _qwen3(5120, 40, 17408), k=3, source="AngelSlim's training config"
    ),
    "AngelSlim/Qwen3-32B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-32B", _qwen3(5120, 64, 25600), k=3, source="AngelSlim's training config"
    ),
    "AngelSlim/Qwen3-a3B_eagle3": KnownDraft(
        "eagle3", "Qwen/Qwen3-30B-A3B", _QWEN3_30B | {"intermediate_size": 6144}, k=3,
        source="AngelSlim's training config",
    ),
    "amd/PARD-Qwen3-0.6B": KnownDraft(
        "pard", "Qwen/Qwen3-8B",
        {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024,
            "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
            "vocab_size": 151936, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "pard_token": 151665,
        },
        k=12, source="vLLM's documentation (size of Qwen3-0.6B)",
    ),
    "google/gemma-4-31B-it-assistant": _assistant(
        "google/gemma-4-31B-it", 4,
        {
            "architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
            "backbone_hidden_size": 5376, "torch_dtype": "bfloat16",
            "text_config": {
                "model_type": "gemma4_text", "hidden_size": 1024, "intermediate_size": 8192, "num_hidden_layers": 4,
                "num_attention_heads": 32, "num_key_value_heads": 16, "num_global_key_value_heads": 4, "head_dim": 256,
                "global_head_dim": 512, "vocab_size": 262144, "sliding_window": 1024,
                "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
            },
        },
    ),
    "google/gemma-4-12B-it-assistant": _assistant("google/gemma-4-12B-it", 4, parameters=418_500_000),
}  # fmt: skip

# The same weights under another name.
for _copy, _name in {
    "jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
    "lmsys/sglang-EAGLE3-LLaMA3.3-Instruct-70B": "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B",
}.items():
    DRAFTS[_copy] = DRAFTS[_name]

# Drafts people ask for whose size no public file tells.
WITHOUT_SIZE: dict[str, str] = {
    "google/gemma-4-E2B-it-assistant": "google/gemma-4-E2B-it",
    "google/gemma-4-E4B-it-assistant": "google/gemma-4-E4B-it",
    "google/gemma-4-26B-A4B-it-assistant": "google/gemma-4-26B-A4B-it",
    "RedHatAI/Qwen3-30B-A3B-speculator.dflash": "Qwen/Qwen3-30B-A3B",
    "mistralai/Mistral-Small-4-119B-2603-eagle": "mistralai/Mistral-Small-4-119B-2603",
}

# Prediction layers inside a target: {k: mean acceptance length} by data set, and the k that recipes run.
MTP_PUBLISHED: dict[str, tuple[int, Lengths, str]] = {
    "deepseek-ai/DeepSeek-V3": (
        1, {"second token": {1: 1.85}}, "DeepSeek-V3's report: 85 to 90 % of second tokens, the lower end taken",
    ),
    "Qwen/Qwen3.8-27B": (3, {"prompts of the recipe": {3: 3.313}}, "vLLM recipes: 0.771 accepted of drafted at k = 3"),
    "Qwen/Qwen3.5-397B-A17B": (
        3, {"MT-Bench": {3: 3.28}, "GSM8K": {3: 3.54}, "HumanEval": {3: 3.62}},
        "the model card of AQ-MedAI/Qwen3.5-397B-A17B-eagle3",
    ),
}  # fmt: skip
