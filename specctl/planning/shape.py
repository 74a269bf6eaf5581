"""The shape of a language model: how many weights of which kind, and what each token leaves in the cache.

Everything comes out of the config.json, so it works for models that are not here. Families: Llama and its kin
(Qwen, Mistral, MiMo), Gemma 3 and 4 (sliding windows, layers without a cache of their own, per-layer embeddings),
mixtures of experts, latent attention (DeepSeek, Kimi), and gated delta layers (Qwen3-Next, Qwen3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from specctl.errors import MissingError
from specctl.modelinfo import ModelFacts

LARGEST = 1 << 32
MOST_LAYERS = 10_000
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


@dataclass(frozen=True)
class Parts:
    """Numbers of weights by kind. `lookup`: tables of which a step reads a few rows only (Gemma's per-layer
    embeddings); `experts`: the routed ones; `other`: norms, biases, routers.
    """

    embedding: int = 0
    head: int = 0
    attention: int = 0
    mlp: int = 0
    experts: int = 0
    other: int = 0
    lookup: int = 0

    @property
    def total(self) -> int:
        """All weights."""
        return sum(getattr(self, each.name) for each in fields(self))

    def __add__(self, more: Parts) -> Parts:
        return Parts(*(getattr(self, each.name) + getattr(more, each.name) for each in fields(self)))

    def times(self, count: int) -> Parts:
        """The weights of `count` such layers."""
        return Parts(*(getattr(self, each.name) * count for each in fields(self)))


@dataclass(frozen=True)
class Piece:
    """A part of the cache: `elements` a token, of `heads` key-value heads (1: every GPU holds all of it), kept for
    the last `window` tokens (None: for all).
    """

    elements: int
    heads: int
    window: int | None = None


@dataclass(frozen=True)
class Shape:
    """What planning needs of a model.

    `cache`: the pieces that grow with the text; `state` and `conv`: elements a sequence that do not (recurrent
    layers); `attention_flops`: floating-point operations a row and cached token; `experts` and `experts_per_token`: of
    one layer; `kernels_layers`: layers that a step launches."""

    parts: Parts
    cache: tuple[Piece, ...]
    hidden: int
    vocab: int
    layers: int
    state: int = 0
    conv: int = 0
    state_dtype: str | None = None
    attention_flops: tuple[tuple[int, int | None], ...] = ()
    experts: int = 0
    experts_per_token: int = 0

    def active(self) -> int:
        """Weights that one token uses."""
        if not self.experts:
            return self.parts.total - self.parts.lookup
        share = self.experts_per_token / self.experts
        return round(self.parts.total - self.parts.lookup - self.parts.experts * (1 - share))

    @property
    def growing(self) -> int:
        """Cached elements a token in the layers whose cache grows with the whole text."""
        return sum(piece.elements for piece in self.cache if piece.window is None)

    def cached(self, tokens: int) -> int:
        """Cached elements of one conversation of `tokens` tokens, recurrent state not counted."""
        return sum(piece.elements * min(tokens, piece.window or tokens) for piece in self.cache)


class Config:
    """A config.json by its meaning; raises `MissingError` naming the key that is not there."""

    def __init__(self, facts: ModelFacts, text: Mapping[str, Any] | None = None) -> None:
        self.name, self.text = facts.name, facts.text if text is None else text
        self.hidden = self.need("hidden_size", "n_embd", "d_model")
        self.layers = self.need("num_hidden_layers", "n_layer", "num_layers")
        if self.layers > MOST_LAYERS:
            raise MissingError(f"the config.json of {facts.name} says it has {self.layers} layers")
        self.vocab = self.need("vocab_size")
        self.heads = self.need("num_attention_heads", "n_head")
        self.kv_heads = self.get("num_key_value_heads", "num_attention_groups") or self.heads
        self.head_dim = self.get("head_dim") or self.hidden // self.heads
        self.inner = self.get("intermediate_size", "n_inner") or 4 * self.hidden
        self.kind = str(self.text.get("model_type") or "")
        self.latent = self.get("kv_lora_rank") or 0

    def get(self, *keys: str) -> int | None:
        """The first of `keys` that the config holds. Raises `MissingError` where that is no size."""
        for key in keys:
            value = self.text.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
                raise MissingError(
                    f"the config.json of {self.name} says {key} is {str(value)[:60]}, which the plan cannot use; "
                    "a whole number was wanted",
                    help="give a model folder whose config.json has its sizes",
                )
            return value
        return None

    def need(self, *keys: str) -> int:
        """As `get`, but it must be there and be positive."""
        value = self.get(*keys)
        if value is None or value <= 0:
            raise MissingError(
                f"the config.json of {self.name} does not say {keys[0]}, which the plan needs",
                help="give a model folder with a full config.json",
            )
        return value

    @property
    def gemma4(self) -> bool:
        """Whether full-attention layers have heads of their own size."""
        return self.kind.startswith("gemma4")

    def kinds(self) -> list[str]:
        """The attention of each layer."""
        listed = self.text.get("layer_types")
        if isinstance(listed, list) and len(listed) >= self.layers:
            return [_kind(str(each), self.name) for each in listed[: self.layers]]
        every = self.get("full_attention_interval")
        if every:
            return [FULL if (number + 1) % every == 0 else LINEAR for number in range(self.layers)]
        window, pattern = self.window, self.get("sliding_window_pattern")
        if window and pattern:
            return [FULL if (number + 1) % pattern == 0 else SLIDING for number in range(self.layers)]
        if window and self.kind == "gpt_oss":
            return [SLIDING if number % 2 == 0 else FULL for number in range(self.layers)]
        return [SLIDING if window else FULL] * self.layers

    @property
    def window(self) -> int | None:
        """Tokens of a sliding window, where one is in use."""
        return None if self.text.get("use_sliding_window") is False else self.get("sliding_window")

    def geometry(self, kind: str) -> tuple[int, int, int]:
        """Heads, key-value heads and head size of a layer of that kind."""
        if self.gemma4 and kind == FULL:
            heads = self.get("num_global_key_value_heads") or self.kv_heads
            return self.heads, heads, self.get("global_head_dim") or self.head_dim
        return self.heads, self.kv_heads, self.head_dim

    @property
    def tied(self) -> bool:
        """Whether embedding and head are one table; Gemma's are where the config is silent."""
        found = self.text.get("tie_word_embeddings")
        return found if isinstance(found, bool) else self.kind.startswith("gemma")


def _kind(name: str, model: str) -> str:
    known = {FULL: FULL, SLIDING: SLIDING, "chunked_attention": SLIDING, LINEAR: LINEAR}
    if name not in known:
        raise MissingError(f"{model} has layers of the kind {name!r}, whose memory the planner does not know")
    return known[name]


def shape_of(facts: ModelFacts) -> Shape:
    """The shape of a language model. Raises `MissingError` where the config does not say enough."""
    config = Config(facts)
    if isinstance(config.text.get("linear_attn_config"), Mapping) or "mamba_num_heads" in config.text:
        raise MissingError(f"{facts.name} has recurrent layers of a kind whose memory the planner does not know")
    kinds = config.kinds()
    own = config.layers - (config.get("num_kv_shared_layers") or 0)
    parts = _outside(config)
    for number, kind in enumerate(kinds):
        parts += _layer(config, number, kind, keeps=number < own)
    experts, per_token = expert_counts(config)
    return Shape(
        parts=parts,
        cache=_cache(config, kinds[:own]),
        hidden=config.hidden,
        vocab=config.vocab,
        layers=config.layers,
        state=kinds.count(LINEAR) * _delta_state(config),
        conv=kinds.count(LINEAR) * _delta_conv(config),
        state_dtype=config.text.get("mamba_ssm_dtype"),
        attention_flops=_attention_flops(config, kinds),
        experts=experts,
        experts_per_token=per_token,
    )


def expert_counts(config: Config) -> tuple[int, int]:
    """Routed experts of a layer and how many of them a token uses; zeros for a dense model."""
    if config.gemma4 and not config.text.get("enable_moe_block"):
        return 0, 0
    count = config.get("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts") or 0
    used = config.get("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "top_k_experts")
    return (count, min(used or 1, count)) if count else (0, 0)


def _outside(config: Config) -> Parts:
    """Embedding, head, final norm, and Gemma's per-layer embeddings."""
    table = config.vocab * config.hidden
    width = config.get("hidden_size_per_layer_input") or 0
    small = config.layers * width * config.hidden + (width if width else 0)
    rows = config.get("vocab_size_per_layer_input") or config.vocab
    return Parts(
        embedding=table,
        head=0 if config.tied else table,
        mlp=small,
        other=config.hidden,
        lookup=rows * config.layers * width,
    )


def _layer(config: Config, number: int, kind: str, keeps: bool) -> Parts:
    norms = 4 * config.hidden if config.kind.startswith("gemma") else 2 * config.hidden
    mixer = _delta(config) if kind == LINEAR else attention(config, kind, keeps)
    width = config.get("hidden_size_per_layer_input") or 0
    extra = Parts(mlp=2 * config.hidden * width, other=config.hidden if width else 0)
    return mixer + feed_forward(config, number, keeps) + extra + Parts(other=norms + (1 if config.gemma4 else 0))


def attention(config: Config, kind: str = FULL, keeps: bool = True, width: int | None = None) -> Parts:
    """Projections of one attention layer; `width`: of its input, where that is not the hidden size."""
    if config.latent:
        return _latent(config)
    heads, kv_heads, size = config.geometry(kind)
    wide = width or config.hidden
    gate = 2 if config.text.get("attn_output_gate") or config.kind == "qwen3_next" else 1
    pairs = 1 if config.text.get("attention_k_eq_v") and kind == FULL else 2
    cached = pairs * kv_heads * size if keeps else 0
    weights = wide * (heads * size * gate + cached) + heads * size * config.hidden
    normed = config.kind.startswith(("qwen3", "gemma"))
    other = (2 if keeps else 1) * size if normed else 0
    if config.text.get("attention_bias"):
        other += heads * size + 2 * kv_heads * size
        other += config.hidden if config.kind == "gpt_oss" else 0
    other += heads if config.kind == "gpt_oss" else 0  # attention sinks
    return Parts(attention=weights, other=other)


def _latent(config: Config) -> Parts:
    rope, nope = config.need("qk_rope_head_dim"), config.need("qk_nope_head_dim")
    value, rank = config.need("v_head_dim"), config.get("q_lora_rank") or 0
    asked = config.heads * (nope + rope)
    query = config.hidden * rank + rank * asked if rank else config.hidden * asked
    keys = config.hidden * (config.latent + rope) + config.latent * config.heads * (nope + value)
    out = config.heads * value * config.hidden
    return Parts(attention=query + keys + out, other=rank + config.latent)


def _delta(config: Config) -> Parts:
    """A gated delta layer: projections, convolution, decay."""
    keys = config.need("linear_num_key_heads") * config.need("linear_key_head_dim")
    heads, size = config.need("linear_num_value_heads"), config.need("linear_value_head_dim")
    weights = config.hidden * (2 * keys + 2 * heads * size + 2 * heads) + heads * size * config.hidden
    return Parts(attention=weights, other=_delta_conv(config) + 2 * heads + size)


def _delta_state(config: Config) -> int:
    if config.get("linear_num_value_heads") is None:
        return 0
    return (
        config.need("linear_num_value_heads")
        * config.need("linear_key_head_dim")
        * config.need("linear_value_head_dim")
    )


def _delta_conv(config: Config) -> int:
    if config.get("linear_num_value_heads") is None:
        return 0
    keys = config.need("linear_num_key_heads") * config.need("linear_key_head_dim")
    values = config.need("linear_num_value_heads") * config.need("linear_value_head_dim")
    return (2 * keys + values) * (config.get("linear_conv_kernel_dim") or 4)


def feed_forward(config: Config, number: int, keeps: bool = True) -> Parts:
    """The dense or expert part of a layer."""
    count, _ = expert_counts(config)
    if not count or not _has_experts(config, number):
        double = 2 if config.text.get("use_double_wide_mlp") and not keeps else 1
        return Parts(mlp=3 * config.hidden * config.inner * double)
    inner = config.get("moe_intermediate_size") or config.inner
    router = config.hidden * count
    if config.kind == "gpt_oss":
        return Parts(
            experts=count * 3 * config.hidden * inner, other=router + count + count * (2 * inner + config.hidden)
        )
    shared = _shared_width(config, inner)
    other = router + (count if config.latent or config.kind.startswith("glm") else 0)
    other += config.hidden if config.get("shared_expert_intermediate_size") else 0
    dense = 3 * config.hidden * config.inner if config.gemma4 else 0
    if config.gemma4:
        other += 3 * config.hidden + config.hidden + count
    return Parts(mlp=3 * config.hidden * shared + dense, experts=count * 3 * config.hidden * inner, other=other)


def _shared_width(config: Config, inner: int) -> int:
    width = config.get("shared_expert_intermediate_size", "share_expert_dim")
    return width if width is not None else (config.get("n_shared_experts", "num_shared_experts") or 0) * inner


def _has_experts(config: Config, number: int) -> bool:
    listed = config.text.get("moe_layers_enum")
    if isinstance(listed, list):
        return number in listed
    dense = config.text.get("mlp_only_layers")
    if isinstance(dense, list) and number in dense:
        return False
    first, step = config.get("first_k_dense_replace") or 0, config.get("decoder_sparse_step") or 1
    return number >= first and (number + 1 - first) % step == 0


def _cache(config: Config, kinds: list[str]) -> tuple[Piece, ...]:
    if config.latent:
        return (Piece(len(kinds) * (config.latent + config.need("qk_rope_head_dim")), 1),)
    pieces = []
    for kind in (FULL, SLIDING):
        count = kinds.count(kind)
        _, kv_heads, size = config.geometry(kind)
        if count:
            pieces.append(Piece(count * 2 * kv_heads * size, kv_heads, config.window if kind == SLIDING else None))
    return tuple(pieces)


def _attention_flops(config: Config, kinds: list[str]) -> tuple[tuple[int, int | None], ...]:
    """Operations a row and cached token by window: two for each product of scores and of values."""
    if config.latent:  # decoding works on the latents themselves
        per_layer = 2 * config.heads * (2 * config.latent + config.need("qk_rope_head_dim"))
        return ((len(kinds) * per_layer, None),)
    found = []
    for kind in (FULL, SLIDING):
        heads, _, size = config.geometry(kind)
        found.append((kinds.count(kind) * 4 * heads * size, config.window if kind == SLIDING else None))
    return tuple(each for each in found if each[0])
