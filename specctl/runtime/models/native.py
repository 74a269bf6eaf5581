"""From a config and a folder of weights to the native decoder, or the reason why it does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from specctl.errors import DamagedError
from specctl.runtime.models.decoder import Decoder
from specctl.runtime.models.linear import Linear
from specctl.runtime.models.stack import LayerWeights, Stack, StackShape
from specctl.runtime.models.weights import Weights

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
MAX_POSITIONS = 2**24
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
    _check_numbers(config, folder)
    weights = Weights(folder, dtype, device)
    shape = stack_shape(config, _windows(config, config.num_hidden_layers))
    embedding = weights.get("model.embed_tokens.weight")
    if tuple(embedding.shape) != (config.vocab_size, config.hidden_size):
        raise DamagedError(
            f"{folder}: config.json says vocab_size {config.vocab_size} and hidden_size {config.hidden_size}, the "
            f"embedding in the weights is {embedding.shape[0]} x {embedding.shape[1]}",
            help="config.json and weights are of different models; download both again",
        )
    found = None if config.tie_word_embeddings else weights.find("lm_head.weight")
    head = embedding if found is None else found
    layers = [read_layer(weights, f"model.layers.{i}.", shape) for i in range(config.num_hidden_layers)]
    norm = weights.get("model.norm.weight")
    cos, sin = rope_tables(config, shape.head_dim, config.max_position_embeddings, dtype, device)
    linear = Linear([head, *(weight for layer in layers for weight in layer.products())])
    return Decoder(Stack(shape, layers, cos, sin, linear), embedding, norm, head, config.max_position_embeddings)


def _check_numbers(config: Any, folder: Path) -> None:
    """Raises DamagedError for what transformers takes, though no model can have been trained with it."""
    wanted = {
        "max_position_embeddings": (1, MAX_POSITIONS),
        "num_attention_heads": (1, config.hidden_size),
        "rms_norm_eps": (0, 1),
        "sliding_window": (1, 2**62),
    }
    for key, (least, most) in wanted.items():
        value = getattr(config, key, None)
        if value is not None and not least <= value <= most:
            raise DamagedError(f"{folder / 'config.json'}: {key} is {value!r}; wanted {least} to {most}")


def stack_shape(config: Any, windows: tuple[int | None, ...]) -> StackShape:
    """The attention sizes that a transformers ``config`` states."""
    return StackShape(
        hidden_size=config.hidden_size,
        inner_size=config.intermediate_size,
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads or config.num_attention_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        norm_eps=config.rms_norm_eps,
        windows=windows,
    )


def _windows(config: Any, num_layers: int) -> tuple[int | None, ...]:
    """Mistral's window covers all layers; Qwen's config lists the kind of each layer."""
    window = getattr(config, "sliding_window", None)
    if config.model_type == "llama" or window is None:
        return (None,) * num_layers
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * num_layers
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def read_layer(
    weights: Weights,
    prefix: str,
    shape: StackShape,
    *,
    entering: int | None = None,
    input_norm: str | None = "input_layernorm",
    gated: bool = False,
    norm_offset: float = 0.0,
) -> LayerWeights:
    """The layer whose tensors begin with ``prefix``.

    ``entering``: width of what attention reads, where not the stream's; ``input_norm`` None: nothing in the layer
    normalises its input; ``gated``: ``q_proj`` holds query and output gate by turns, head by head; ``norm_offset`` is
    added to the norms of families that store them as differences from 1.
    """
    hidden, inner = shape.hidden_size, shape.inner_size
    attention, mlp, width = prefix + "self_attn.", prefix + "mlp.", entering or hidden
    query, pairs = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    query_weight, gate = weights.get(attention + "q_proj.weight", 2 * query if gated else query, width), None
    if gated:
        by_head = query_weight.view(shape.num_heads, 2, shape.head_dim, width)
        query_weight, gate = by_head[:, 0].reshape(query, width), by_head[:, 1].reshape(query, width)
    keys_values = [weights.get(f"{attention}{name}.weight", pairs, width) for name in ("k_proj", "v_proj")]
    gates, biases = [mlp + name for name in ("gate_proj", "up_proj")], (query, pairs, pairs)
    return LayerWeights(
        attention_norm=None
        if input_norm is None
        else weights.get(f"{prefix}{input_norm}.weight", hidden) + norm_offset,
        qkv=torch.cat([query_weight, *keys_values]),
        qkv_bias=weights.stacked({f"{attention}{name}_proj.bias": n for name, n in zip("qkv", biases, strict=True)}),
        qk_norm=_qk_norm(weights, attention, shape, norm_offset),
        output=weights.get(attention + "o_proj.weight", hidden, query),
        output_bias=weights.find(attention + "o_proj.bias", hidden),
        mlp_norm=weights.get(prefix + "post_attention_layernorm.weight", hidden) + norm_offset,
        gate_up=torch.cat([weights.get(f"{name}.weight", inner, hidden) for name in gates]),
        gate_up_bias=weights.stacked({f"{name}.bias": inner for name in gates}),
        down=weights.get(mlp + "down_proj.weight", hidden, inner),
        down_bias=weights.find(mlp + "down_proj.bias", hidden),
        output_gate=gate,
    )


def _qk_norm(weights: Weights, attention: str, shape: StackShape, offset: float) -> Tensor | None:
    """q's and k's norm weights, one row a head, so that one product serves both."""
    query = weights.find(attention + "q_norm.weight", shape.head_dim)
    if query is None:
        return None
    key = weights.get(attention + "k_norm.weight", shape.head_dim)
    return torch.cat([query.expand(shape.num_heads, -1), key.expand(shape.num_kv_heads, -1)]) + offset


def rope_tables(
    config: Any, head_dim: int, positions: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """cos and sin [positions, dims that turn]; the angles are float32 in every dtype, as the models were trained."""
    rope = config.rope_parameters
    kind = rope.get("rope_type", "default")
    if kind == "default":
        turning = int(head_dim * rope.get("partial_rotary_factor", 1.0))
        exponents = torch.arange(0, turning, 2, dtype=torch.float32) / turning
        frequencies, scale = 1.0 / (rope["rope_theta"] ** exponents), 1.0
    else:
        frequencies, scale = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return (angles.cos() * scale).to(device, dtype), (angles.sin() * scale).to(device, dtype)
