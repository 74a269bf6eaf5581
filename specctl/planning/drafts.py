"""What a draft adds: its weights, its share of the cache, and what one of its forwards reads.

Sizes follow the layouts of the checkpoints: EAGLE-3 joins three hidden states of the target and doubles the input of
its first layer, MTP is one more layer of the target, an assistant of Gemma 4 has queries only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specctl.errors import MissingError, SpecctlError
from specctl.modelinfo import ModelFacts
from specctl.modelinfo.families import is_eagle3_head, mtp_family, mtp_layers
from specctl.planning.shape import Config, Parts, Piece, Shape, attention, expert_counts, feed_forward, shape_of

MODEL_FREE = ("ngram", "suffix")


@dataclass(frozen=True)
class DraftShape:
    """A draft in numbers.

    `stored`: weights that lie in memory because of it; `read`: weights one forward reads, with a head or embedding it
    shares with the target; `parallel`: all k tokens come from one forward; `max_k`: the largest k it can draft."""

    method: str
    stored: Parts = field(default_factory=Parts)
    read: Parts = field(default_factory=Parts)
    cache: tuple[Piece, ...] = ()
    layers: int = 0
    parallel: bool = False
    max_k: int | None = None
    experts: int = 0
    experts_per_token: int = 0
    attention_flops: tuple[tuple[int, int | None], ...] = ()
    notes: tuple[str, ...] = ()


def model_free(method: str) -> DraftShape:
    """n-gram or suffix search: no weights, no cache on the GPU."""
    return DraftShape(method, parallel=True, notes=(f"{method} drafts on the CPU; its own time is taken as nothing",))


def draft_shape(
    facts: ModelFacts, target: ModelFacts, *, method: str | None = None, own_embedding: bool = False
) -> DraftShape:
    """The draft of a checkpoint beside its target. `own_embedding`: the checkpoint stores an embedding of its own.

    Raises `MissingError` where a config does not say enough, `SpecctlError` for a checkpoint that is no draft of the
    wanted method."""
    if method == "mtp" and not facts.model_type.endswith("assistant"):
        return mtp_shape(facts)
    for suits, build in _BUILDERS:
        if suits(facts):
            return build(facts, shape_of(target), own_embedding)
    if method not in (None, "draft_model", "pard"):
        raise SpecctlError(
            f"{facts.name} is a plain language model, not a draft of the method {method}",
            help="give a checkpoint made for that method, or plan it with the method draft_model",
        )
    return _plain(facts, parallel=method == "pard" or facts.number("pard_token", "ptd_token_id") is not None)


def _plain(facts: ModelFacts, parallel: bool) -> DraftShape:
    shape = shape_of(facts)
    read = shape.parts if shape.parts.head == 0 else replace(shape.parts, embedding=0)
    return DraftShape(
        "pard" if parallel else "draft_model",
        stored=shape.parts,
        read=read,
        cache=shape.cache,
        layers=shape.layers,
        parallel=parallel,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        attention_flops=shape.attention_flops,
    )


def mtp_shape(target: ModelFacts) -> DraftShape:
    """The prediction layers inside a target. Raises `SpecctlError` where it has none."""
    family = mtp_family(target)
    count = mtp_layers(target, family) if family else 0
    if not count:
        raise SpecctlError(f"{target.name} has no prediction layers (MTP) of its own", help="name a draft with --draft")
    config, shape = Config(target), shape_of(target)
    step = config.kind.startswith("step3")  # its prediction layers are dense
    wide = Parts(mlp=3 * config.hidden * config.inner) if step else feed_forward(config, config.layers - 1)
    layer = attention(config) + wide + Parts(mlp=2 * config.hidden**2, other=5 * config.hidden)
    table = config.vocab * config.hidden
    stored = layer.times(count)
    notes: tuple[str, ...] = ()
    if step or config.text.get("first_k_dense_replace") is not None:  # DeepSeek, GLM and Step store them once more
        stored += Parts(embedding=table, head=table).times(count)
        notes = ("the prediction layers' own copies of embedding and head are counted",)
    pieces = tuple(
        replace(piece, elements=piece.elements // max(_full_layers(config), 1) * count)
        for piece in shape.cache
        if piece.window is None
    )
    experts, per_token = (0, 0) if step else expert_counts(config)
    flops = tuple((each // max(_full_layers(config), 1), window) for each, window in shape.attention_flops[:1])
    return DraftShape(
        "mtp",
        stored=stored,
        read=layer + Parts(head=table),
        cache=pieces,
        layers=1,
        experts=experts,
        experts_per_token=per_token,
        attention_flops=flops,
        notes=notes,
    )


def _full_layers(config: Config) -> int:
    return config.kinds().count("full_attention")


def _inner(facts: ModelFacts, target: Shape) -> Config:
    """The config of a head's own layers, whatever the layout; the vocabulary is the target's where it is silent."""
    nested = facts.config.get("transformer_layer_config")
    text: dict[str, Any] = {"vocab_size": target.vocab, **facts.text}
    if isinstance(nested, Mapping):
        text |= nested
    return Config(facts, text)


def _layer(config: Config, width: int | None = None) -> Parts:
    return (
        attention(config, width=width)
        + Parts(mlp=3 * config.hidden * config.inner)
        + Parts(other=(2 if width is None else 3) * config.hidden)
    )


def _own_cache(config: Config) -> tuple[Piece, ...]:
    if config.latent:
        return (Piece(config.layers * (config.latent + config.need("qk_rope_head_dim")), 1),)
    return (Piece(config.layers * 2 * config.kv_heads * config.head_dim, config.kv_heads),)


def _flops(config: Config) -> tuple[tuple[int, int | None], ...]:
    return ((config.layers * 4 * config.heads * config.head_dim, None),)


def _taps(facts: ModelFacts) -> int:
    """How many hidden states of the target are joined."""
    inner = facts.config.get("eagle_config")
    options: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    if options.get("use_aux_hidden_state") is False:
        return 1
    for source in (options, facts.config, facts.config.get("dflash_config") or {}):
        for key in ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "target_layer_ids"):
            listed = source.get(key) if isinstance(source, Mapping) else None
            if isinstance(listed, list) and listed:
                return len(listed)
    return facts.number("num_aux_hidden_states") or 3


def _eagle3(facts: ModelFacts, target: Shape, own_embedding: bool) -> DraftShape:
    config = _inner(facts, target)
    wide = facts.number("target_hidden_size") or target.hidden
    rows = facts.number("draft_vocab_size", "truncated_vocab_size") or config.vocab
    taps = _taps(facts)
    joined = 0 if taps == 1 and wide == config.hidden else taps * wide * config.hidden
    body = _layer(config, width=2 * config.hidden) + _layer(config).times(config.layers - 1)
    read = body + Parts(mlp=joined, head=rows * config.hidden, other=config.hidden)
    stored = read + Parts(embedding=config.vocab * config.hidden) if own_embedding else read
    parallel = facts.speculators_type == "peagle" or facts.architecture.startswith(("PEagle", "Peagle"))
    return DraftShape(
        "eagle3", stored, read, _own_cache(config), config.layers, parallel, attention_flops=_flops(config)
    )


def _eagle(facts: ModelFacts, target: Shape, own_embedding: bool) -> DraftShape:
    config = _inner(facts, target)
    body = _layer(config).times(config.layers) + Parts(mlp=2 * config.hidden**2)
    stored = body + Parts(embedding=config.vocab * config.hidden) if own_embedding else body
    read = body + Parts(head=config.vocab * config.hidden)
    return DraftShape(
        "eagle", stored, read, _own_cache(config), config.layers, attention_flops=_flops(config),
        notes=("the head reads the target's output matrix",),
    )  # fmt: skip


def _dflash(facts: ModelFacts, target: Shape, _own_embedding: bool) -> DraftShape:
    config = _inner(facts, target)
    body = _layer(config).times(config.layers) + Parts(mlp=_taps(facts) * target.hidden * config.hidden)
    own = facts.number("draft_vocab_size")
    head = Parts(head=(own or config.vocab) * config.hidden)
    return DraftShape(
        "dflash", body + head if own else body, body + head, _own_cache(config), config.layers, True,
        max_k=(facts.block_size or 17) - 1, attention_flops=_flops(config),
    )  # fmt: skip


def _medusa(facts: ModelFacts, target: Shape, _own_embedding: bool) -> DraftShape:
    count = facts.number("medusa_num_heads", "num_heads") or 5
    deep = facts.number("medusa_num_layers", "num_hidden_layers") or 1
    hidden, rows = facts.hidden_size or target.hidden, facts.number("truncated_vocab_size", "vocab_size")
    parts = Parts(mlp=count * deep * hidden**2, head=count * (rows or target.vocab) * hidden)
    return DraftShape("medusa", parts, parts, (), 1, True, max_k=count)


def _mlp_speculator(facts: ModelFacts, target: Shape, _own_embedding: bool) -> DraftShape:
    wide = facts.number("emb_dim") or target.hidden
    inner, count = facts.number("inner_dim") or wide, facts.number("n_predict") or 3
    rows = facts.vocab_size or target.vocab
    tied = bool(facts.config.get("tie_weights"))
    tables = 1 if tied else count
    chain = inner * wide + (1 if tied else count - 1) * inner * inner
    stored = Parts(embedding=tables * rows * inner, head=tables * rows * inner, mlp=chain, other=2 * tables * inner)
    read = Parts(head=rows * inner, mlp=inner * max(wide, inner))
    return DraftShape("mlp_speculator", stored, read, (), 1, False, max_k=count)


def _assistant(facts: ModelFacts, target: Shape, _own_embedding: bool) -> DraftShape:
    text = {"vocab_size": target.vocab, **facts.text}
    config = Config(facts, text)
    back = facts.number("backbone_hidden_size") or target.hidden
    parts = Parts(embedding=config.vocab * config.hidden, mlp=3 * back * config.hidden, other=config.hidden)
    for kind in config.kinds():
        heads, _, size = config.geometry(kind)
        parts += Parts(
            attention=2 * config.hidden * heads * size,
            mlp=3 * config.hidden * config.inner,
            other=4 * config.hidden + size + 1,
        )
    return DraftShape("mtp", parts, parts, (), config.layers, notes=("the assistant reads the target's own cache",))


def _speaks(*words: str) -> Callable[[ModelFacts], bool]:
    return lambda facts: any(
        word in (facts.architecture + facts.model_type + facts.speculators_type).lower() for word in words
    )


def _is_eagle3(facts: ModelFacts) -> bool:
    return is_eagle3_head(facts) or facts.architecture.startswith("PEagle")


_BUILDERS: tuple[tuple[Callable[[ModelFacts], bool], Callable[[ModelFacts, Shape, bool], DraftShape]], ...] = (
    (_speaks("assistant"), _assistant),
    (lambda facts: facts.model_type == "mlp_speculator" or _speaks("mlpspeculator")(facts), _mlp_speculator),
    (lambda facts: "dflash_config" in facts.config or _speaks("dflash", "dspark")(facts), _dflash),
    (lambda facts: facts.number("medusa_num_heads") is not None or _speaks("medusa")(facts), _medusa),
    (_is_eagle3, _eagle3),
    (_speaks("eagle"), _eagle),
)


def given_shape(method: str, parameters: int, elements: int, heads: int, layers: int, max_k: int | None) -> DraftShape:
    """A draft of which only the number of weights is known; `elements` a token in its cache."""
    if parameters <= 0:
        raise MissingError("the number of weights of the draft is not known")
    parts = Parts(mlp=parameters)
    pieces = (Piece(elements, heads),) if elements else ()
    return DraftShape(method, parts, parts, pieces, layers, max_k=max_k, notes=("the draft's size is its card's",))
