"""What vLLM makes of its keys before the first token: method by name, defaults, overrides, side effects.

Follows the order of vLLM 0.31.0 (`config/speculative.py`). Nothing here is judged; facts that rules need stand in
`reading.notes`: `method_written`, `method`, `n_predict`, `draft` (ModelFacts), `served` (a speculators checkpoint
that is the target itself)."""

from __future__ import annotations

from typing import Any

from specctl.dialects.reading import Reading
from specctl.dialects.vllm import MODEL_FREE, MTP_ALIASES, NGRAM
from specctl.modelinfo import ModelFacts
from specctl.modelinfo.families import mtp_family, mtp_layers

KEPT = frozenset({"eagle", "eagle3", "dflash", "dspark"})
SPECULATORS = {"eagle3": "eagle3", "peagle": "eagle3", "dflash": "dflash", "dflash2": "dflash", "dspark": "dspark"}
_DSPARK_ARCHITECTURES = frozenset({"Qwen3DSparkModel", "Qwen3OmniDSparkModel", "Gemma4DSparkModel"})


def is_dotted_path(model: str) -> bool:
    """Whether vLLM reads a model name as the import path of a proposer class."""
    if model.startswith(("http://", "https://", "file://")) or "/" in model:
        return False
    parts = model.split(".")
    return len(parts) >= 2 and all(part.isidentifier() for part in parts)


def resolve(reading: Reading) -> None:
    """Fill `reading.effective`, `changes` and `notes`."""
    reading.around.tidy()
    served = _served(reading)
    if reading.off and served is None:
        reading.effective = {}
        return
    method = _method(reading, served)
    reading.notes["method"] = method
    effective: dict[str, Any] = {"method": method, "model": _model(reading, method, served)}
    reading.effective = effective
    draft = _draft(reading, effective["model"], method, served)
    reading.notes["draft"] = draft
    effective["num_speculative_tokens"] = _count(reading, method, draft, served)
    _bounds(reading, effective, method)
    size = reading.get("draft_tensor_parallel_size")
    if method not in MODEL_FREE or size is not None:
        effective["draft_tensor_parallel_size"] = size or _arg(reading, "tensor_parallel_size", 1)
    _parallel(reading, effective, method, served)
    _schedule(reading, effective)
    _acceptance(reading, effective)
    _suffix(reading, effective, method)
    _plain(reading, effective)
    _side_effects(reading, effective, method, draft)


def _arg(reading: Reading, key: str, default: Any = None) -> Any:
    value = reading.around.args.get(key)
    return default if value is None else value


def _served(reading: Reading) -> ModelFacts | None:
    """The target's facts where the target itself is a checkpoint in the speculators format."""
    target = reading.around.target_facts
    if target is None or target.speculators is None:
        return None
    reading.notes["served"] = target
    return target


def _method(reading: Reading, served: ModelFacts | None) -> str:
    written, model = reading.get("method"), reading.get("model")
    reading.notes["method_written"] = written
    if served is not None:
        method = SPECULATORS.get(served.speculators_type, served.speculators_type or "draft_model")
        for key, value in (("method", written), ("model", model)):
            if value is not None and value != (method if key == "method" else served.name):
                reading.change(
                    "SPC321",
                    key,
                    value,
                    method if key == "method" else served.name,
                    "the served checkpoint is in the speculators format and brings its own",
                )
        return method
    if written is None:
        if model is not None and is_dotted_path(model):
            reading.change(
                "SPC322",
                "method",
                None,
                "custom_class",
                f"the model name {model!r} reads as the path of a Python class",
                "give the folder with a slash, such as ./" + model,
            )
            return "custom_class"
        method = "ngram" if model in ("ngram", "[ngram]") else "draft_model"
    elif written in MTP_ALIASES:
        reading.change("SPC301", "method", written, "mtp", "this name is deprecated", 'write "method": "mtp"')
        method = "mtp"
    else:
        method = written
    return _by_draft(reading, method, written, model)


def _by_draft(reading: Reading, method: str, written: str | None, model: str | None) -> str:
    if method in MODEL_FREE or method in KEPT:
        return method
    name = model
    if name is None:
        name = reading.around.target if method == "mtp" else None
    if name is None:
        return method
    found = _ladder(name, reading.around.facts(name), method)
    if found is None:
        reading.notes["unsupported_method"] = method
        return method
    if found != method and written is not None and method != "mtp":
        reading.change(
            "SPC202",
            "method",
            written,
            found,
            f"the draft's path or type ({name}) speaks of {found}",
            "rename the folder, or give the method that it is loaded as",
        )
    elif found != method and written is not None:
        reading.change("SPC202", "method", written, found, f"the draft's path ({name}) speaks of {found}")
    return found


def _ladder(name: str, facts: ModelFacts | None, method: str) -> str | None:
    """The method that vLLM settles on for a draft; None where it gives up."""
    low = name.lower()
    architectures = facts.architectures if facts else ()
    kind = facts.model_type if facts else ""
    if "eagle-" in low:
        return "eagle"
    if "eagle3" in low:
        return "eagle3"
    if "dflash" in low or "MuseGlimmerAssistantModel" in architectures:
        return "dflash"
    if "dspark" in low or _DSPARK_ARCHITECTURES & set(architectures):
        return "dspark"
    if "DSparkDraftModel" in architectures and kind == "qwen3":
        return "dspark"
    if method == "medusa" or kind == "medusa":
        return "medusa"
    if kind == "mlp_speculator":
        return "mlp_speculator"
    if facts is None:
        return method
    if mtp_family(facts) is not None:
        return "mtp"
    return method if method == "draft_model" else None


def _model(reading: Reading, method: str, served: ModelFacts | None) -> str | None:
    model = reading.get("model")
    if served is not None:
        return served.name
    if method == "extract_hidden_states":
        return "extract_hidden_states"
    if model is not None:
        return str(model)
    if not reading.given("num_speculative_tokens"):
        return None
    if method in ("mtp", "dspark"):
        return reading.around.target
    return method if method in NGRAM or method == "suffix" else None


def _draft(reading: Reading, model: str | None, method: str, served: ModelFacts | None) -> ModelFacts | None:
    if served is not None:
        return served
    return None if method in MODEL_FREE or model is None else reading.around.facts(model)


def _count(reading: Reading, method: str, draft: ModelFacts | None, served: ModelFacts | None) -> int | None:
    given = reading.get("num_speculative_tokens")
    predict = n_predict(draft) if draft is not None and served is None else None
    reading.notes["n_predict"] = predict
    if given is not None:
        return int(given)
    if served is not None:
        return served.proposed_tokens
    if method == "suffix":
        return int(reading.get("suffix_decoding_max_tree_depth", 24))
    if method == "dspark" and draft is not None and reading.given("model"):
        return draft.block_size
    return predict if method != "mtp" else None


def n_predict(draft: ModelFacts) -> int | None:
    """The token count that vLLM reads out of a draft's config."""
    family = mtp_family(draft)
    if family is not None:
        return mtp_layers(draft, family)
    return draft.number("n_predict")


def _bounds(reading: Reading, effective: dict[str, Any], method: str) -> None:
    low, high = reading.get("prompt_lookup_min"), reading.get("prompt_lookup_max")
    if method == "suffix":
        effective["prompt_lookup_min"], effective["prompt_lookup_max"] = low, high
    elif method not in NGRAM:
        effective["prompt_lookup_min"] = effective["prompt_lookup_max"] = 0
    elif low is None and high is None:
        effective["prompt_lookup_min"] = effective["prompt_lookup_max"] = 5
    else:
        effective["prompt_lookup_min"] = low if low is not None else high
        effective["prompt_lookup_max"] = high if high is not None else low
        if low is None or high is None:
            missing, other = ("prompt_lookup_min", high) if low is None else ("prompt_lookup_max", low)
            reading.change(
                "SPC120",
                missing,
                None,
                other,
                "one bound alone is used for both",
                f"give {missing} too, such as 2 and 4 together",
            )


def _parallel(reading: Reading, effective: dict[str, Any], method: str, served: ModelFacts | None) -> None:
    given = bool(reading.get("parallel_drafting", False))
    forced = method in ("dflash", "dspark") or (served is not None and served.speculators_type == "peagle")
    effective["parallel_drafting"] = given or forced


def _schedule(reading: Reading, effective: dict[str, Any]) -> None:
    entries = reading.get("num_speculative_tokens_per_batch_size")
    key, limit = "num_speculative_tokens_per_batch_size", effective["num_speculative_tokens"]
    if entries is None:
        return
    if not entries:
        effective[key] = []
        reading.change("SPC323", key, [], None, "an empty schedule means none")
        return
    if _arg(reading, "data_parallel_size", 1) > 1:
        reading.change("SPC323", key, entries, None, "the schedule is dropped under data parallelism")
        return
    effective[key] = entries
    if limit is not None:
        clamped = [[first, last, min(k, limit)] for first, last, k in entries]
        effective["k_from_batch_size"] = sorted([first, k] for first, _, k in clamped)
        if clamped != entries:
            reading.change(
                "SPC323",
                key,
                entries,
                clamped,
                f"no entry may exceed num_speculative_tokens ({limit})",
                f"raise num_speculative_tokens to {max(k for _, _, k in entries)} or lower the entry",
            )


def _acceptance(reading: Reading, effective: dict[str, Any]) -> None:
    method = reading.get("rejection_sample_method", "standard")
    if method != "standard":
        effective["rejection_sample_method"] = method
    length, count = reading.get("synthetic_acceptance_length"), effective["num_speculative_tokens"]
    rates = reading.get("synthetic_acceptance_rates")
    if method == "synthetic" and rates is not None:
        effective["synthetic_acceptance_rates"] = rates
    elif method == "synthetic" and length is not None and count is not None and 1 <= length <= count + 1:
        whole = int(length - 1)
        rates = [1.0] * whole + ([round(length - 1 - whole, 12)] if whole < count else []) + [0.0] * (count - whole - 1)
        effective["synthetic_acceptance_rates"] = rates[:count]


def _suffix(reading: Reading, effective: dict[str, Any], method: str) -> None:
    if method == "suffix":
        for key, default in (
            ("max_tree_depth", 24),
            ("max_cached_requests", 10000),
            ("max_spec_factor", 1.0),
            ("min_token_prob", 0.1),
        ):
            effective[f"suffix_decoding_{key}"] = reading.get(f"suffix_decoding_{key}", default)


def _plain(reading: Reading, effective: dict[str, Any]) -> None:
    """Values that stay as they were read."""
    for key in (
        "draft_sample_method",
        "quantization",
        "max_model_len",
        "revision",
        "code_revision",
        "enforce_eager",
        "moe_backend",
        "kv_cache_dtype",
        "use_heterogeneous_vocab",
        "disable_padded_drafter_batch",
        "disable_eagle_block_drop",
        "use_local_argmax_reduction",
        "dspark_draft_topk",
        "enable_adaptive_verification",
    ):
        if reading.given(key):
            effective[key] = reading.get(key)
    backend = reading.get("attention_backend")
    if backend and backend.lower() != "auto":
        effective["attention_backend"] = backend.upper()


def extra_slots(method: str, count: int, parallel: bool) -> int:
    """Additional query slots a request needs for drafting."""
    if method == "dflash":
        return count
    if parallel:
        return count if method == "draft_model" else count - 1
    return 1 if method == "draft_model" else 0


def _side_effects(reading: Reading, effective: dict[str, Any], method: str, draft: ModelFacts | None) -> None:
    count = effective["num_speculative_tokens"]
    if count is not None:
        effective["extra_slots_per_request"] = extra_slots(method, count, effective["parallel_drafting"])
        lookahead = {"dflash": count + 1}.get(method, count if method in KEPT | {"mtp", "draft_model"} else 0)
        effective["lookahead_tokens"] = lookahead
    if method in MODEL_FREE - {"ngram_gpu", "extract_hidden_states"} | {"medusa"}:
        effective["async_scheduling"] = False
    served = reading.notes.get("served")
    effective["target_model"] = (served.verifier if served else None) or reading.around.target
    if draft is not None and draft.max_positions is not None:
        effective["draft_max_model_len"] = _draft_length(reading, draft)


def _draft_length(reading: Reading, draft: ModelFacts) -> int | None:
    """The context up to which the draft is used."""
    if reading.given("max_model_len"):
        return int(reading.get("max_model_len"))
    target = reading.around.target_facts
    limit = _arg(reading, "max_model_len") or (target.max_positions if target else None)
    own = draft.max_positions
    return own if limit is None or own is None else min(own, limit)
