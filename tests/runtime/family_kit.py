"""A tiny random checkpoint of every family in the table of `specctl.runtime.models.families`, in its published layout,
with the prediction layers that the family ships.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.runtime.kit import SIZES, save

Tensors = dict[str, Tensor]
WIDTH = SIZES["hidden_size"]
TINY = SIZES | {"num_hidden_layers": 4, "pad_token_id": 257}
EXPERTS = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
WINDOW = {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"] * 2}
LATENT = {
    "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1,
}  # fmt: skip
LINEAR = {
    "head_dim": 16, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"] * 2,
}  # fmt: skip
QWEN_EXPERTS = EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 16}


@dataclass(frozen=True)
class Tiny:
    """How a family's checkpoint is made: ``build(layers)`` answers the network with ``layers`` more of its last layers,
    ``mtp`` turns the tensors of those into the prediction layers that the family publishes.
    """

    build: Callable[[int], Any]
    kind: str | None = None
    mtp: Callable[[Tensors, int], Tensors] | None = None
    layers: int = 1
    counted: str = "num_nextn_predict_layers"
    keys: dict[str, Any] = field(default_factory=dict)


def _sizes(extra: int, **keys: Any) -> dict[str, Any]:
    sizes = TINY | keys
    sizes["num_hidden_layers"] += extra
    if "layer_types" in sizes:
        sizes["layer_types"] = [*sizes["layer_types"], *sizes["layer_types"][-1:] * extra]
    return sizes


def _norms(*names: str) -> Tensors:
    return {f"{name}.weight": torch.rand(WIDTH) * 0.8 + 0.6 for name in names}


def _fusion(name: str) -> Tensors:
    return {f"{name}.weight": torch.randn(WIDTH, 2 * WIDTH) * 0.2}


def deepseek(tensors: Tensors, layer: int) -> Tensors:
    """The layer behind the last, with its fusion and norms; embedding and head are copies of the main ones."""
    prefix = f"model.layers.{layer}."
    copies = {f"{prefix}embed_tokens.weight": tensors["model.embed_tokens.weight"].clone()}
    copies |= {f"{prefix}shared_head.head.weight": tensors["lm_head.weight"].clone()}
    return (
        tensors
        | copies
        | _fusion(f"{prefix}eh_proj")
        | _norms(*(prefix + name for name in ("enorm", "hnorm", "shared_head.norm")))
    )


def qwen(tensors: Tensors, layer: int) -> Tensors:
    old = next(name for name in tensors if f".layers.{layer}." in name).split(f"layers.{layer}.")[0]
    moved = {name.replace(f"{old}layers.{layer}.", "mtp.layers.0."): value for name, value in tensors.items()}
    return moved | _fusion("mtp.fc") | _norms("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm")


def mimo(tensors: Tensors, layer: int) -> Tensors:
    prefix = "model.mtp_layers.0."
    moved = {name.replace(f"model.layers.{layer}.", prefix): value for name, value in tensors.items()}
    norms = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    return moved | _fusion(f"{prefix}input_proj") | _norms(*(prefix + name for name in norms))


def ernie(tensors: Tensors, layer: int) -> Tensors:
    """A layer of Llama's kind, whatever the main layers are."""
    own = randomised(hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES | {"num_hidden_layers": 1})).state_dict())
    block = {name.replace("model.layers.0.", "model.mtp_block.0."): v for name, v in own.items() if ".layers." in name}
    kept = {name: value for name, value in tensors.items() if f".layers.{layer}." not in name}
    return kept | block | _fusion("model.mtp_linear_proj.0") | _norms("model.mtp_emb_norm.0", "model.mtp_hidden_norm.0")


STEP: dict[str, Any] = TINY | EXPERTS | {
    "head_dim": 8, "n_routed_experts": 4, "share_expert_dim": 16, "moe_layers_enum": [1, 2, 3, 4, 5, 6],
    "attention_other_setting": {"num_attention_heads": 6}, "moe_router_scaling_factor": 3.0, "sliding_window": 7,
    "layer_types": [*["full_attention", "sliding_attention"] * 2, *["sliding_attention"] * 3],
}  # fmt: skip
SMALL_VISION = {"width": 16, "layers": 1, "heads": 2, "image_size": 28, "patch_size": 14}


EVEN = STEP | {"attention_other_setting": {"num_attention_heads": 4}}


def _step(extra: int, sizes: dict[str, Any]) -> Any:
    text = sizes | {"num_hidden_layers": 4 + extra}
    return hf.Step3p7ForConditionalGeneration(hf.Step3p7Config(vision_config=SMALL_VISION, text_config=text))


def _step_tiny(sizes: dict[str, Any]) -> Tiny:
    """The lists of the published config go on over the prediction layers."""
    keys = {"text_config": sizes | {"num_nextn_predict_layers": 3}}
    return Tiny(lambda n: _step(n, sizes), mtp=deepseek, layers=3, keys=keys)


def _kimi25(extra: int) -> Any:
    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    text = _sizes(extra, **LATENT, **EXPERTS) | {"model_type": "kimi_k2"}
    return hf.Kimi_K25ForConditionalGeneration(hf.Kimi_K25Config(vision_config=vision, text_config=text))


def _qwen35(extra: int, moe: bool, whole: bool = False) -> Any:
    name = "Qwen3_5Moe" if moe else "Qwen3_5"
    sizes = _sizes(extra, **LINEAR, **(QWEN_EXPERTS if moe else {}))
    if moe:
        del sizes["intermediate_size"]
    if not whole:
        return getattr(hf, f"{name}ForCausalLM")(getattr(hf, f"{name}TextConfig")(**sizes))
    vision = {"hidden_size": 16, "depth": 1, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": WIDTH}
    config = getattr(hf, f"{name}Config")(text_config=sizes, vision_config=vision)
    return getattr(hf, f"{name}ForConditionalGeneration")(config)


def _gemma4(extra: int, **keys: Any) -> Any:
    sizes = _sizes(extra, **WINDOW, head_dim=8, global_head_dim=16, **keys)
    return hf.Gemma4ForCausalLM(hf.Gemma4TextConfig(**sizes))


def _gemma3_whole(extra: int) -> Any:
    vision = SMALL_TOWER | {"image_size": 28, "patch_size": 14}
    config = hf.Gemma3Config(text_config=_sizes(extra, **WINDOW, head_dim=8), vision_config=vision)
    return hf.Gemma3ForConditionalGeneration(config)


def _gemma4_whole(extra: int) -> Any:
    text = _sizes(extra, **WINDOW, head_dim=8, global_head_dim=16, **SHARING)
    vision = SMALL_TOWER | {"num_key_value_heads": 2, "head_dim": 8}
    return hf.Gemma4ForConditionalGeneration(hf.Gemma4Config(text_config=text, vision_config=vision))


def _gemma4_unified(extra: int, whole: bool) -> Any:
    text = _sizes(extra, **WINDOW, head_dim=8, global_head_dim=16)
    if whole:
        return hf.Gemma4UnifiedForConditionalGeneration(hf.Gemma4UnifiedConfig(text_config=text))
    return hf.Gemma4UnifiedForCausalLM(hf.Gemma4UnifiedTextConfig(**text))


SMALL_TOWER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
SHARING = {"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 258}
NO_INPUTS = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
GEMMA_EXPERTS = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 16}

TINIES: dict[str, Tiny] = {
    "mimo": Tiny(lambda n: hf.Qwen2ForCausalLM(hf.Qwen2Config(**_sizes(n))), "mimo", mimo),
    "mixtral": Tiny(lambda n: hf.MixtralForCausalLM(hf.MixtralConfig(**_sizes(n), num_local_experts=4))),
    "mixtral-window": Tiny(
        lambda n: hf.MixtralForCausalLM(hf.MixtralConfig(**_sizes(n), num_local_experts=4, sliding_window=9))
    ),
    "qwen3_moe": Tiny(
        lambda n: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**_sizes(n, **EXPERTS), head_dim=8, num_experts=4))
    ),
    "qwen3_next": Tiny(
        lambda n: hf.Qwen3NextForCausalLM(hf.Qwen3NextConfig(**_sizes(n, **LINEAR, **QWEN_EXPERTS))), mtp=qwen
    ),
    "qwen3_5_text": Tiny(lambda n: _qwen35(n, False), mtp=qwen, counted="mtp_num_hidden_layers"),
    "qwen3_5": Tiny(lambda n: _qwen35(n, False, True), mtp=qwen, counted="mtp_num_hidden_layers"),
    "qwen3_5_moe_text": Tiny(lambda n: _qwen35(n, True), mtp=qwen, counted="mtp_num_hidden_layers"),
    "qwen3_5_moe": Tiny(lambda n: _qwen35(n, True, True), mtp=qwen, counted="mtp_num_hidden_layers"),
    "deepseek_v3": Tiny(
        lambda n: hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(**_sizes(n, **LATENT, **EXPERTS))), mtp=deepseek
    ),
    "kimi_k2": Tiny(
        lambda n: hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(**_sizes(n, **LATENT, **EXPERTS))),
        "kimi_k2",
        keys={"num_nextn_predict_layers": 0},
    ),
    "kimi_k25": Tiny(_kimi25),
    "gemma3_text": Tiny(lambda n: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**_sizes(n, **WINDOW), head_dim=8))),
    "gemma3": Tiny(_gemma3_whole),
    "gemma4": Tiny(_gemma4_whole),
    "gemma4_unified": Tiny(lambda n: _gemma4_unified(n, True)),
    "gemma4_unified_text": Tiny(lambda n: _gemma4_unified(n, False)),
    "gemma4_text": Tiny(lambda n: _gemma4(n, **SHARING)),
    "gemma4_text-experts": Tiny(
        lambda n: _gemma4(n, **GEMMA_EXPERTS, attention_k_eq_v=True, num_global_key_value_heads=1, **NO_INPUTS)
    ),
    "gpt_oss": Tiny(
        lambda n: hf.GptOssForCausalLM(
            hf.GptOssConfig(**_sizes(n, **WINDOW), head_dim=8, num_local_experts=4, num_experts_per_tok=2)
        )
    ),
    "glm4_moe": Tiny(
        lambda n: hf.Glm4MoeForCausalLM(
            hf.Glm4MoeConfig(**_sizes(n, **EXPERTS), head_dim=8, n_routed_experts=8, first_k_dense_replace=1)
        ),
        mtp=deepseek,
    ),
    "ernie4_5": Tiny(lambda n: hf.Ernie4_5ForCausalLM(hf.Ernie4_5Config(**_sizes(n), head_dim=8)), mtp=ernie),
    "ernie4_5_moe": Tiny(
        lambda n: hf.Ernie4_5_MoeForCausalLM(
            hf.Ernie4_5_MoeConfig(
                **_sizes(n), moe_intermediate_size=16, moe_num_experts=4, moe_k=2, moe_num_shared_experts=1,
                moe_layer_start_index=1,
            )
        ),
        mtp=ernie,
    ),
    "step3p7": _step_tiny(STEP),
    "step3p7-even": _step_tiny(EVEN),
    "step3p5": _step_tiny(STEP),
}  # fmt: skip


def randomised(tensors: Tensors) -> Tensors:
    """Nothing may stand at its neutral value, so that leaving it out shows."""
    made = {}
    for name, value in tensors.items():
        if name.endswith(("bias", "sinks")):
            value = torch.randn_like(value) * 0.3
        elif "norm" in name or name.endswith("layer_scalar"):
            value = torch.rand_like(value) * 0.8 + 0.6
        elif name.endswith("embed_tokens.weight") and "lm_head.weight" not in tensors:
            value = value * 0.1  # a tied head would see nothing but the newest token
        made[name] = value
    return made


def write_family(name: str, folder: Path, seed: int = 0, whole: Path | None = None) -> Path:
    """The checkpoint of ``name`` with its prediction layers; in ``whole`` the same with those as ordinary layers."""
    torch.manual_seed(seed)
    tiny = TINIES[name]
    extra = tiny.layers if tiny.mtp else 0
    network = tiny.build(extra)
    save(network, folder)
    tensors = randomised(load_file(folder / "model.safetensors"))
    if whole:
        shutil.copytree(folder, whole)
        save_file(tensors, whole / "model.safetensors", {"format": "pt"})
    if tiny.mtp:
        for layer in range(4, 4 + extra):
            tensors = tiny.mtp(tensors, layer)
    # The vision tower's renaming, undone by transformers when it saves, catches the text layers as well.
    published = {
        key.replace("language_model.model.blocks.", "language_model.model.layers."): tensors[key] for key in tensors
    }
    save_file(
        {key: value.contiguous() for key, value in published.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    _rewrite_config(folder / "config.json", tiny, extra)
    if name == "step3p5":
        _as_text(folder)
    return folder


def _as_text(folder: Path) -> None:
    """The text of Step-3.7 as Step-3.5 is published: without the tower, its config at the top."""
    tensors = load_file(folder / "model.safetensors")
    text = {name: value for name, value in tensors.items() if not name.startswith(("vision_model.", "vit_"))}
    save_file(text, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(TINIES["step3p5"].keys["text_config"] | {"model_type": "step3p5"}))


def _rewrite_config(path: Path, tiny: Tiny, extra: int) -> None:
    raw = json.loads(path.read_text())
    text = raw.get("text_config", raw)
    if extra:
        text[tiny.counted] = extra
        text["num_hidden_layers"] = 4
        if "layer_types" in text:
            text["layer_types"] = text["layer_types"][:4]
    raw |= tiny.keys
    if tiny.kind:
        raw["model_type"] = tiny.kind
    path.write_text(json.dumps(raw))


def write_relative(folder: Path, made: Path, noise: float = 0.02) -> Path:
    """A draft that often agrees with the target in ``folder``: its weights with a little noise."""
    torch.manual_seed(7)
    shutil.copytree(folder, made)
    tensors = load_file(folder / "model.safetensors")
    for name, value in tensors.items():
        if value.is_floating_point():
            tensors[name] = value + torch.randn_like(value) * noise * value.abs().mean()
    save_file(tensors, made / "model.safetensors", {"format": "pt"})
    return made
