"""Prediction layers of the same kind as the target's own layers, experts and latent attention included: built from the
target's class, run on its rotations, with the attention and caches of the flat batch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from specctl.runtime.kv_cache import Span
from specctl.runtime.models.attention import Plan, make_plan
from specctl.runtime.models.exact import make_exact
from specctl.runtime.models.flat import FlatModel
from specctl.runtime.models.flat_step import LayeredCache, Step, host
from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.weights import Weights

# What a checkpoint calls otherwise than transformers.
_RENAMED = (
    ("mlp.gate.weight", "moe.gate.weight"),
    ("mlp.gate.e_score_correction_bias", "moe.router_bias"),
    ("mlp.experts.down_proj", "moe.down_proj.weight"),
    ("mlp.shared_experts.", "share_expert."),
)


@dataclass(frozen=True)
class NetworkPlace:
    """Where the rows of one forward stand, as `specctl.runtime.models.stack.Place` says it for native layers."""

    cache: LayeredCache
    plan: Plan
    spans: Sequence[Span]


class NetworkLayers:
    """Layers behind the interface of a `Stack`."""

    def __init__(self, target: FlatModel, layers: list[nn.Module], kinds: Sequence[str]) -> None:
        self._layers = layers
        self._kinds = kinds
        self._rotate: Any = target.network.get_decoder().rotary_emb
        self._turns_by_kind = bool(target.config.nested_rope_parameter_keys(target.config.rope_parameters))
        self._eps: float = target.config.rms_norm_eps
        self._device = target.device
        self._step = Step()
        for index, layer in enumerate(layers):
            for module in layer.children():
                if hasattr(module, "layer_idx"):
                    host(module, self._step, index)
            if target.dtype == torch.float64:
                make_exact(layer)

    def make_cache(self, num_slots: int, max_len: int) -> LayeredCache:
        """An empty cache of ``num_slots`` sequences of up to ``max_len`` tokens."""
        return LayeredCache(num_slots, max_len)

    def place(self, spans: Sequence[Span], cache: LayeredCache) -> NetworkPlace:
        """The place of the rows of ``spans``."""
        return NetworkPlace(cache, make_plan(spans, cache, self._device), spans)

    def layer(self, index: int, hidden: Tensor, place: NetworkPlace) -> Tensor:
        """``hidden`` [T, width] through layer ``index``."""
        self._step.cache, self._step.plan, self._step.spans = place.cache, place.plan, list(place.spans)
        positions = place.plan.positions.unsqueeze(0)
        kind = {"layer_type": self._kinds[index]} if self._turns_by_kind else {}
        turned = self._rotate(hidden.unsqueeze(0), position_ids=positions, **kind)
        out = self._layers[index](
            hidden.unsqueeze(0), attention_mask=None, position_embeddings=turned, position_ids=positions, cache=None
        )
        return (out if isinstance(out, Tensor) else out[0])[0]

    def norm(self, rows: Tensor, weight: Tensor) -> Tensor:
        """RMS norm of each row."""
        return nn.functional.rms_norm(rows, (rows.shape[-1],), weight, self._eps)

    def linear(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``rows`` [T, in] times ``weight`` transposed."""
        return nn.functional.linear(rows, weight, bias)


def load_network_layers(files: HeadFiles, raw: Any, prefixes: Sequence[str]) -> NetworkLayers:
    """The layers whose tensors begin with ``prefixes``; ``raw``: the text part of config.json.

    Raises MissingError or DamagedError for tensors that are absent or of another shape than the target's config says.
    """
    target = files.target
    assert isinstance(target, FlatModel), "only these have layers of transformers"
    weights = files.weights
    config = _layer_config(target.config, raw, len(prefixes))
    if getattr(config, "num_sliding_attention_heads", None) is not None:
        config.per_layer_config = _head_counts(config, weights, prefixes)
    kind: Any = type(target.layers[-1])
    made: list[nn.Module] = []
    for index, prefix in enumerate(prefixes):
        with torch.device("meta"):
            layer = kind(config, index)
        tensors = {name: _tensor(weights, prefix, name, like) for name, like in layer.state_dict().items()}
        layer.load_state_dict(tensors, assign=True)
        made.append(layer.eval())
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * len(prefixes)
    return NetworkLayers(target, made, kinds)


def _layer_config(config: Any, raw: Any, count: int) -> Any:
    """The target's ``config`` as if it had the ``count`` prediction layers alone, all with experts where it has any."""
    made = copy.deepcopy(config)
    first = made.num_hidden_layers
    made.num_hidden_layers = count
    if getattr(made, "layer_types", None) is not None:
        made.layer_types = (getattr(made, "mtp_layer_types", None) or ["full_attention"] * count)[:count]
    if getattr(made, "mlp_layer_types", None) is not None:
        made.mlp_layer_types = (getattr(made, "mtp_mlp_layer_types", None) or ["sparse"] * count)[:count]
    if hasattr(made, "first_k_dense_replace"):
        made.first_k_dense_replace = 0
    for key in ("swiglu_limits", "swiglu_limits_shared"):
        if getattr(made, key, None) is not None:
            setattr(made, key, (raw.get(key) or [])[first : first + count] or None)
    made.per_layer_config = None
    return made


def _head_counts(config: Any, weights: Weights, prefixes: Sequence[str]) -> dict[int, dict[str, int]]:
    """For families whose layers differ in it: the number of heads that each layer's own query has."""
    queries = [weights.get(f"{prefix}self_attn.q_proj.weight", None, config.hidden_size) for prefix in prefixes]
    return {index: {"num_attention_heads": len(rows) // config.head_dim} for index, rows in enumerate(queries)}


def _tensor(weights: Weights, prefix: str, name: str, like: Tensor) -> Tensor:
    """The tensor that transformers calls ``name``, of the shape of ``like``; experts may be stored one by one."""
    stored = _stored(weights, prefix, name)
    experts = ("gate_proj", "up_proj") if name.endswith(".experts.gate_up_proj") else ("down_proj",)
    if stored in weights or not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
        return weights.get(stored, *like.shape)
    count, rows, width = len(like), like.shape[1] // len(experts), like.shape[2]
    if f"{prefix}moe.gate_proj.weight" in weights:
        return torch.cat([weights.get(f"{prefix}moe.{part}.weight", count, rows, width) for part in experts], dim=1)
    at = prefix + name.rsplit(".", 1)[0]
    each = [[weights.get(f"{at}.{e}.{part}.weight", rows, width) for part in experts] for e in range(count)]
    return torch.stack([torch.cat(parts) for parts in each])


def _stored(weights: Weights, prefix: str, name: str) -> str:
    for ours, theirs in _RENAMED:
        if name.startswith(ours) and prefix + (renamed := name.replace(ours, theirs)) in weights:
            return prefix + renamed
    return prefix + name
