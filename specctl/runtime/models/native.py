"""From a config and a folder of weights to the native decoder, or the reason why it does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from specctl.runtime.models.decoder import Decoder, DecoderShape, LayerWeights
from specctl.runtime.models.weights import Weights

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
ROPE_TYPES = ("default", "linear", "llama3", "yarn")


def why_not_native(config: Any) -> str | None:
    """Why the native decoder cannot run a transformers ``config``; None when it can."""
    if config.model_type not in MODEL_TYPES:
        return f"model type {config.model_type}"
    if getattr(config, "quantization_config", None):
        return "quantized weights"
    rope = config.rope_parameters
    if rope.get("rope_type", "default") not in ROPE_TYPES:
        return f"rope type {rope.get('rope_type')}"
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        return "rope on a part of the head"
    if config.hidden_act != "silu":
        return f"activation {config.hidden_act}"
    return None


def load_native(config: Any, folder: Path, dtype: torch.dtype, device: torch.device) -> Decoder:
    """The decoder of ``folder``; raises MissingError or DamagedError for weights that are absent or unreadable."""
    weights = Weights(folder, dtype, device)
    shape = _shape(config)
    embedding = weights.get("model.embed_tokens.weight")
    head = embedding if config.tie_word_embeddings else weights.find("lm_head.weight")
    cos, sin = _rope_tables(config, shape, dtype, device)
    layers = [_layer(weights, f"model.layers.{i}.", shape) for i in range(shape.num_layers)]
    norm = weights.get("model.norm.weight")
    return Decoder(shape, embedding, layers, norm, embedding if head is None else head, cos, sin)


def _shape(config: Any) -> DecoderShape:
    num_layers = config.num_hidden_layers
    return DecoderShape(
        num_layers=num_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads or config.num_attention_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        vocab_size=config.vocab_size,
        max_positions=config.max_position_embeddings,
        norm_eps=config.rms_norm_eps,
        windows=_windows(config, num_layers),
    )


def _windows(config: Any, num_layers: int) -> tuple[int | None, ...]:
    """Mistral's window covers all layers; Qwen's config lists the kind of each layer."""
    window = getattr(config, "sliding_window", None)
    if config.model_type == "llama" or window is None:
        return (None,) * num_layers
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * num_layers
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def _layer(weights: Weights, prefix: str, shape: DecoderShape) -> LayerWeights:
    attention, mlp = prefix + "self_attn.", prefix + "mlp."
    projections = [attention + name for name in ("q_proj", "k_proj", "v_proj")]
    gates = [mlp + name for name in ("gate_proj", "up_proj")]
    return LayerWeights(
        attention_norm=weights.get(prefix + "input_layernorm.weight"),
        qkv=weights.joined(*(name + ".weight" for name in projections)),
        qkv_bias=weights.joined_or_none(*(name + ".bias" for name in projections)),
        qk_norm=_qk_norm(weights, attention, shape),
        output=weights.get(attention + "o_proj.weight"),
        output_bias=weights.find(attention + "o_proj.bias"),
        mlp_norm=weights.get(prefix + "post_attention_layernorm.weight"),
        gate_up=weights.joined(*(name + ".weight" for name in gates)),
        gate_up_bias=weights.joined_or_none(*(name + ".bias" for name in gates)),
        down=weights.get(mlp + "down_proj.weight"),
        down_bias=weights.find(mlp + "down_proj.bias"),
    )


def _qk_norm(weights: Weights, attention: str, shape: DecoderShape) -> Tensor | None:
    """q's and k's norm weights, one row a head, so that one product serves both."""
    query = weights.find(attention + "q_norm.weight")
    if query is None:
        return None
    key = weights.get(attention + "k_norm.weight")
    return torch.cat([query.expand(shape.num_heads, -1), key.expand(shape.num_kv_heads, -1)])


def _rope_tables(config: Any, shape: DecoderShape, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin [max_positions, head_dim]; the angles are float32 in every dtype, as the models were trained."""
    rope = config.rope_parameters
    kind = rope.get("rope_type", "default")
    if kind == "default":
        exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
        frequencies, scale = 1.0 / (rope["rope_theta"] ** exponents), 1.0
    else:
        frequencies, scale = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    angles = torch.outer(torch.arange(shape.max_positions, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return (angles.cos() * scale).to(device, dtype), (angles.sin() * scale).to(device, dtype)
