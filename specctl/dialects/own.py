"""specctl's own YAML: `specctl: 1` and the canonical spec, one key a line."""

from __future__ import annotations

from typing import Any

from specctl.dialects.field import Field
from specctl.spec import METHODS, SpecDecodeConfig

ENGINE = "specctl"
METHOD_KINDS: dict[str, str] = {"bool": "bool", "int": "int", "float": "float", "str": "str"}

# Keys of the root that every method has.
ROWS: tuple[Field, ...] = (
    Field("specctl", None, "int", nullable=False, minimum=1, maximum=1, doc="the version of this format"),
    Field("target", "target", doc="the model that is served: bundled name, folder or id"),
    Field("method", None, nullable=False, doc="how tokens are drafted"),
    Field("model", "model", doc="the draft: bundled name, folder or id"),
    Field(
        "num_speculative_tokens",
        "num_speculative_tokens",
        "int",
        nullable=False,
        minimum=1,
        doc="drafted tokens a step and request",
    ),
    Field(
        "draft_sample_method",
        "draft_sample_method",
        nullable=False,
        choices=("greedy", "probabilistic"),
        doc="how the draft picks its tokens",
    ),
    Field("max_concurrency", "max_concurrency", "int", minimum=1, doc="drafts up to this many requests at once"),
    Field("schedule", None, "any", doc="draft length by batch size: [first, last or null, k]"),
    Field("acceptance", None, "object", doc="how drafted tokens are verified"),
    Field("draft", None, "object", doc="how the draft is loaded and run"),
    Field("tree", None, "object", doc="a drafted tree: topk and num_nodes, or choices"),
    Field("engines", None, "object", doc='releases that this setting was made for, such as vllm: ">=0.31"'),
    Field("source", None, "any", doc="where the setting comes from"),
    Field("published", None, "any", doc="published acceptance lengths"),
    Field("advice", None, "any", doc="up to which load the setting pays"),
    Field("engine_options", None, "object", doc="native keys kept as they are: vllm: {...}"),
)
ACCEPTANCE: tuple[Field, ...] = (
    Field(
        "method",
        "acceptance.method",
        nullable=False,
        choices=("standard", "block", "coupled", "typical", "relaxed", "synthetic"),
    ),
    Field("synthetic_rates", "acceptance.synthetic_rates", "floats"),
    Field("synthetic_length", "acceptance.synthetic_length", "float"),
    Field("threshold_single", "acceptance.threshold_single", "float", nullable=False, minimum=0, maximum=1),
    Field("threshold_acc", "acceptance.threshold_acc", "float", nullable=False, minimum=0, maximum=1),
    Field("relaxed_topk", "acceptance.relaxed_topk", "int", minimum=1),
    Field("relaxed_delta", "acceptance.relaxed_delta", "float", minimum=0),
    Field("posterior_threshold", "acceptance.posterior_threshold", "float"),
    Field("thinking_begin_token", "acceptance.thinking_begin_token", "int", minimum=0, doc="relaxed from here on"),
    Field("thinking_end_token", "acceptance.thinking_end_token", "int", minimum=0, doc="and up to here"),
)
DRAFT: tuple[Field, ...] = (
    Field("tensor_parallel_size", "draft.tensor_parallel_size", "int", minimum=1),
    Field("quantization", "draft.quantization"),
    Field("max_model_len", "draft.max_model_len", "int", minimum=1),
    Field("revision", "draft.revision"),
    Field("code_revision", "draft.code_revision"),
    Field("load_format", "draft.load_format"),
    Field("attention_backend", "draft.attention_backend"),
    Field("moe_backend", "draft.moe_backend"),
    Field("kv_cache_dtype", "draft.kv_cache_dtype"),
    Field("enforce_eager", "draft.enforce_eager", "bool"),
    Field("window_size", "draft.window_size", "int", minimum=1),
    Field("sink_size", "draft.sink_size", "int", minimum=0),
)
TREE: tuple[Field, ...] = (
    Field("topk", None, "int", minimum=1, doc="branches a node of a dynamic tree"),
    Field("num_nodes", None, "int", minimum=1, doc="drafted nodes of a dynamic tree that are verified"),
    Field("choices", None, "any", doc="a static tree: the path of each node in ranks, such as [[0], [1], [0, 0]]"),
)

_RANGES: dict[str, dict[str, Any]] = {
    "prompt_lookup_min": {"minimum": 1},
    "prompt_lookup_max": {"minimum": 1},
    "search": {"choices": ("earliest", "latest", "transformers", "trie")},
    "max_tree_depth": {"minimum": 1},
    "max_cached_requests": {"minimum": 0},
    "max_spec_factor": {"minimum": 0},
    "min_token_prob": {"minimum": 0, "maximum": 1},
}


def method_rows(method: str) -> tuple[Field, ...]:
    """Rows for the keys that only this method has, made from its dataclass."""
    from dataclasses import fields

    found = []
    for row in fields(METHODS[method]):
        name = str(row.type).split(" ", 1)[0].split("[", 1)[0]
        kind = METHOD_KINDS.get(name, "ints")
        nullable = row.default is None
        found.append(
            Field(
                row.name,
                f"method.{row.name}",
                kind,
                nullable=nullable,
                default=row.default,
                **_RANGES.get(row.name, {}),
            )
        )
    return tuple(found)


def write(spec: SpecDecodeConfig, release: str) -> dict[str, Any]:
    """The root of a specctl YAML file."""
    del release
    return (
        {"specctl": 1} | {key: value for key, value in spec.as_dict().items() if value is not None} | dict(spec.about)
    )
