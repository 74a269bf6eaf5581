"""TensorRT-LLM's keys of `speculative_config`, its spellings of methods by release, and the writer.

Facts: 1.2.1 from its documentation build, 1.4.0rc0 from the nearest published sources. Keys are checked for each
type; unknown ones are refused; numbers are read in pydantic's lax mode. A schedule's keys are lower bounds in 1.2.1
and upper bounds in 1.4."""

from __future__ import annotations

from typing import Any

from specctl.dialects.choices import written
from specctl.dialects.field import Field, by_key, default_at, has_path, read_path
from specctl.dialects.trtllm_line import NEW, dump_schedule, is_new
from specctl.spec import SpecDecodeConfig, filled

ENGINE = "trtllm"

# type -> (canonical method, since, until)
TYPES: dict[str, tuple[str, str | None, str | None]] = {
    "Eagle": ("eagle3", None, None),
    "Eagle3": ("eagle3", NEW, None),
    "MTP": ("mtp", None, None),
    "NGram": ("ngram", None, None),
    "DraftTarget": ("draft_model", None, NEW),
    "Draft_Target": ("draft_model", NEW, None),
    "UserProvided": ("custom_class", None, NEW),
    "User_Provided": ("custom_class", NEW, None),
    "AUTO": ("auto", None, None),
    "SaveState": ("extract_hidden_states", None, None),
    "Medusa": ("medusa", None, NEW),
    "Lookahead": ("lookahead", None, NEW),
    "SA": ("suffix_automaton", NEW, None),
    "PARD": ("pard", NEW, None),
    "DFlash": ("dflash", NEW, None),
    "DSpark": ("dspark", NEW, None),
}
MOE_BACKENDS = (
    "AUTO",
    "CUTLASS",
    "CUTEDSL",
    "CUTEDSL_FC12",
    "TRTLLM",
    "DEEPGEMM",
    "DENSEGEMM",
    "VANILLA",
    "TRITON",
    "MARLIN",
    "MEGAMOE_DEEPGEMM",
    "MEGAMOE_CUTEDSL",
)
EAGLES = frozenset({"Eagle", "Eagle3"})
TREES = EAGLES | {"MTP"}
THINKING_BEGIN, THINKING_END = 128798, 128799  # DeepSeek's, the defaults


def types(release: str) -> dict[str, str]:
    """The spellings of one release with their canonical methods."""
    new = is_new(release)
    return {
        name: method
        for name, (method, since, until) in TYPES.items()
        if (since is None or new) and (until is None or not new)
    }


def _types(*names: str) -> frozenset[str]:
    return frozenset(names)


ROWS: tuple[Field, ...] = (
    Field("decoding_type", None, doc="the method, case-sensitive"),
    Field("max_draft_len", "num_speculative_tokens", "int", until=NEW, doc="drafted tokens a step"),
    Field("max_draft_len", "num_speculative_tokens", "int", minimum=0, since=NEW, doc="drafted tokens a step"),
    Field("max_total_draft_tokens", None, "int", doc="nodes of a dynamic tree; overwritten elsewhere"),
    Field("speculative_model", "model", aliases=("speculative_model_dir",), doc="the draft: folder or id"),
    Field("max_concurrency", "max_concurrency", "int", until=NEW, doc="drafts up to this many requests at once"),
    Field(
        "max_concurrency", "max_concurrency", "int", minimum=1, since=NEW, doc="drafts up to this many requests at once"
    ),
    Field("draft_len_schedule", None, "int_map", doc="draft length by batch size"),
    Field("load_format", "draft.load_format", doc="`dummy`: random draft weights"),
    Field(
        "acceptance_window", None, "int", minimum=0, until=NEW, doc="requests over which acceptance is averaged; 0: off"
    ),
    Field(
        "acceptance_length_threshold",
        None,
        "float",
        minimum=0,
        until=NEW,
        doc="speculation ends for good below this length",
    ),
    Field(
        "acceptance_rate_window_size", None, "int", minimum=0, since=NEW, doc="steps over which acceptance is averaged"
    ),
    Field(
        "acceptance_rate_threshold",
        None,
        "float",
        minimum=0,
        maximum=1,
        since=NEW,
        doc="speculation ends for good below this rate",
    ),
    Field(
        "allow_advanced_sampling", None, "bool", nullable=False, doc="sampling in one-model modes (no effect in 1.4)"
    ),
    Field(
        "use_rejection_sampling", None, "bool", nullable=False, since=NEW, doc="sampled drafts with rejection sampling"
    ),
    Field(
        "advanced_sampling_mode",
        None,
        since=NEW,
        choices=("full", "no_topk", "no_topp", "no_topk_no_topp"),
        doc="sampling filters",
    ),
    Field("enable_penalty", None, "bool", nullable=False, since=NEW, doc="serve requests with penalties"),
    Field("moe_backend", "draft.moe_backend", since=NEW, choices=MOE_BACKENDS, doc="expert kernels of the draft"),
    Field("spec_dec_variant", None, "int", minimum=1, since=NEW),
    # Eagle, Eagle3
    Field("eagle_choices", None, "any", methods=_types("Eagle"), until=NEW, doc="a static tree"),
    Field("greedy_sampling", None, "bool", methods=_types("Eagle"), until=NEW),
    Field("posterior_threshold", "acceptance.posterior_threshold", "float", methods=_types("Eagle"), until=NEW),
    Field("eagle3_one_model", None, "bool", methods=_types("Eagle"), until=NEW),
    Field("use_dynamic_tree", None, "bool", nullable=False, methods=EAGLES, until=NEW, doc="a tree by confidence"),
    Field("use_dynamic_tree", None, "bool", nullable=False, methods=TREES, since=NEW, doc="a tree by confidence"),
    Field("dynamic_tree_max_topK", None, "int", methods=EAGLES, until=NEW, doc="branches a node"),
    Field("dynamic_tree_max_topK", None, "int", methods=TREES, since=NEW, doc="branches a node"),
    Field("num_eagle_layers", None, "int", methods=EAGLES, doc="overwritten by max_draft_len"),
    Field("max_non_leaves_per_layer", None, "int", methods=EAGLES),
    Field(
        "eagle3_layers_to_capture",
        "method.aux_layers",
        "ints",
        methods=EAGLES | {"SaveState"},
        doc="target layers the head reads",
    ),
    Field("eagle3_model_arch", None, methods=EAGLES, nullable=False, until=NEW, default="llama3"),
    Field(
        "eagle3_model_arch",
        None,
        methods=EAGLES,
        nullable=False,
        choices=("llama3", "mistral_large3"),
        since=NEW,
        default="llama3",
    ),
    Field(
        "sa_config",
        None,
        "object",
        methods=_types("Eagle3", "MTP", "PARD"),
        since=NEW,
        doc="suffix automaton beside the draft",
    ),
    # MTP
    Field(
        "num_nextn_predict_layers",
        None,
        "int",
        methods=_types("MTP"),
        doc="the draft length in 1.2.1; deprecated in 1.4",
    ),
    Field(
        "use_relaxed_acceptance_for_thinking",
        None,
        "bool",
        methods=_types("MTP"),
        doc="lossy acceptance while thinking",
    ),
    Field("relaxed_topk", "acceptance.relaxed_topk", "int", nullable=False, methods=_types("MTP"), until=NEW),
    Field(
        "relaxed_topk", "acceptance.relaxed_topk", "int", nullable=False, minimum=1, methods=_types("MTP"), since=NEW
    ),
    Field("relaxed_delta", "acceptance.relaxed_delta", "float", nullable=False, methods=_types("MTP"), until=NEW),
    Field(
        "relaxed_delta",
        "acceptance.relaxed_delta",
        "float",
        nullable=False,
        minimum=0,
        methods=_types("MTP"),
        since=NEW,
    ),
    Field("use_mtp_vanilla", "method.vanilla", "bool", nullable=False, methods=_types("MTP"), default=False),
    Field("mtp_eagle_one_model", None, "bool", methods=_types("MTP"), until=NEW),
    Field("num_nextn_predict_layers_from_model_config", None, "int", methods=_types("MTP"), until=NEW),
    Field("begin_thinking_phase_token", "acceptance.thinking_begin_token", "int", methods=_types("MTP")),
    Field("end_thinking_phase_token", "acceptance.thinking_end_token", "int", methods=_types("MTP")),
    # NGram, SA
    Field(
        "max_matching_ngram_size", "method.prompt_lookup_max", "int", nullable=False, methods=_types("NGram"), until=NEW
    ),
    Field(
        "max_matching_ngram_size",
        "method.prompt_lookup_max",
        "int",
        nullable=False,
        minimum=1,
        methods=_types("NGram"),
        since=NEW,
    ),
    Field(
        "is_keep_all",
        None,
        "bool",
        nullable=False,
        methods=_types("NGram"),
        default=True,
        doc="keep all matches of a key",
    ),
    Field(
        "is_use_oldest",
        None,
        "bool",
        nullable=False,
        methods=_types("NGram"),
        default=True,
        doc="draft from the oldest match",
    ),
    Field(
        "is_public_pool",
        None,
        "bool",
        nullable=False,
        methods=_types("NGram"),
        default=True,
        doc="all requests share one pool",
    ),
    Field(
        "max_matching_ngram_size",
        "method.max_matching_ngram_size",
        "int",
        nullable=False,
        methods=_types("SA"),
        since=NEW,
    ),
    Field("enable_global_pool", "method.shared_pool", "bool", nullable=False, methods=_types("SA"), since=NEW),
    Field("global_pool_size", "method.pool_size", "int", minimum=1, methods=_types("SA"), since=NEW),
    # PARD, DFlash, DSpark
    Field("mask_token_id", "method.mask_token_id", "int", methods=_types("PARD", "DFlash", "DSpark"), since=NEW),
    Field("target_layer_ids", "method.target_layer_ids", "ints", methods=_types("DFlash", "DSpark"), since=NEW),
    Field(
        "attention_backend",
        "draft.attention_backend",
        methods=_types("DFlash"),
        since=NEW,
        choices=("VANILLA", "TRTLLM", "FA4"),
    ),
    Field(
        "attention_backend",
        "draft.attention_backend",
        methods=_types("DSpark"),
        since=NEW,
        choices=("VANILLA", "TRTLLM", "AUTO", "CUTEDSL"),
    ),
    Field("context_recompute_tail", None, "any", methods=_types("DFlash"), since=NEW),
    Field("skip_ctx_buffer_budget_check", None, "bool", methods=_types("DFlash"), since=NEW),
    Field("block_size", None, "int", minimum=1, methods=_types("DSpark"), since=NEW, doc="equals max_draft_len"),
    Field("markov_rank", None, "int", methods=_types("DSpark"), since=NEW),
    Field("markov_head_type", None, methods=_types("DSpark"), since=NEW, choices=("vanilla", "gated", "rnn")),
    # SaveState, user drafter, TensorRT-engine methods
    Field("output_directory", None, methods=_types("SaveState")),
    Field("write_interval", None, "int", nullable=False, methods=_types("SaveState")),
    Field("file_prefix", None, nullable=False, methods=_types("SaveState")),
    Field("drafter", None, "any", methods=_types("UserProvided", "User_Provided")),
    Field("resource_manager", None, "any", methods=_types("UserProvided", "User_Provided")),
    Field("medusa_choices", None, "any", methods=_types("Medusa"), until=NEW),
    Field("num_medusa_heads", "method.num_heads", "int", methods=_types("Medusa"), until=NEW),
    Field(
        "max_window_size",
        "method.max_window_size",
        "int",
        nullable=False,
        minimum=1,
        methods=_types("Lookahead"),
        until=NEW,
    ),
    Field(
        "max_ngram_size",
        "method.max_ngram_size",
        "int",
        nullable=False,
        minimum=1,
        methods=_types("Lookahead"),
        until=NEW,
    ),
    Field(
        "max_verification_set_size",
        "method.max_verification_set_size",
        "int",
        nullable=False,
        minimum=1,
        methods=_types("Lookahead"),
        until=NEW,
    ),
)

# Keys that other releases or programs have.
MOVED: dict[str, str] = {
    "acceptance_window": "acceptance_rate_window_size (it counts speculating steps, not requests)",
    "acceptance_length_threshold": "acceptance_rate_threshold (a rate: roughly length / max_draft_len)",
    "acceptance_rate_window_size": "acceptance_window (it counts completed requests)",
    "acceptance_rate_threshold": "acceptance_length_threshold (accepted tokens a step)",
    "use_sa_spec": "sa_config: {threshold: 4}",
    "sa_spec_threshold": "sa_config: {threshold: 4}",
    "pytorch_weights_path": "speculative_model",
    "draft_model": "speculative_model",
}


def native_type(spec: SpecDecodeConfig, release: str) -> str | None:
    """The spelling of the spec's method in a release; None where it has none."""
    return next((name for name, method in reversed(types(release).items()) if method == spec.method.name), None)


def write(spec: SpecDecodeConfig, release: str) -> dict[str, Any]:
    """The YAML root with `speculative_config`. Values without a counterpart are left out; `convert` names them."""
    name = native_type(spec, release)
    found: dict[str, Any] = {"decoding_type": name}
    for row in ROWS:
        if (
            row.path is None
            or not row.in_release(release)
            or not row.for_method(name)
            or not has_path(type(spec.method), row.path)
        ):
            continue
        value = read_path(spec, row.path)
        if value is None or (
            value == default_at(spec, row.path)
            and row.path not in ("num_speculative_tokens", "method.prompt_lookup_max")
        ):
            continue
        if not row.choices or value in row.choices:
            found[row.key] = list(value) if isinstance(value, tuple) else value
    _special(spec, release, found)
    root = {"speculative_config": found | native_options(spec, release)}
    # These two run on the engine backend of 1.2.1 alone, which the file must ask for.
    return {"backend": "tensorrt"} | root if name in ("Medusa", "Lookahead") else root


def native_options(spec: SpecDecodeConfig, release: str) -> dict[str, Any]:
    """The native keys that the spec carries, as far as the release knows them for its type."""
    known = by_key(ROWS, release, native_type(spec, release))
    return {key: value for key, value in spec.engine_options.get(ENGINE, {}).items() if key in known}


def _special(spec: SpecDecodeConfig, release: str, found: dict[str, Any]) -> None:
    if spec.schedule:
        steps = filled(spec.schedule, spec.num_speculative_tokens)
        found["draft_len_schedule"] = dump_schedule(steps, release)
        most = steps[0].num_speculative_tokens
        if 0 < most == max(step.num_speculative_tokens for step in steps) and "max_draft_len" in found:
            found["max_draft_len"] = most  # the engine wants the first length to be the greatest
    if spec.method.name == "mtp" and not is_new(release) and "max_draft_len" in found:
        found["num_nextn_predict_layers"] = found.pop("max_draft_len")
    if spec.method.name == "ngram":
        if not getattr(spec.method, "shared_pool", False):
            found["is_public_pool"] = False
        if getattr(spec.method, "search", "") == "latest":
            found["is_use_oldest"] = False
    if spec.tree is not None:
        found |= written(spec.tree, found["decoding_type"], TREES if is_new(release) else EAGLES, is_new(release))
    if spec.acceptance.method == "relaxed":
        found["use_relaxed_acceptance_for_thinking"] = True
    if spec.draft_sample_method == "probabilistic" and is_new(release):
        found["use_rejection_sampling"] = True
