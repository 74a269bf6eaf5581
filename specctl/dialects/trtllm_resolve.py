"""What TensorRT-LLM makes of its keys: lengths, budgets, schedules, AUTO, side effects. Nothing is judged here."""

from __future__ import annotations

from typing import Any

from specctl.dialects.choices import static_tree
from specctl.dialects.reading import Reading
from specctl.dialects.trtllm import EAGLES, TREES
from specctl.dialects.trtllm_line import is_new

PLAIN = (
    "speculative_model",
    "max_concurrency",
    "draft_len_schedule",
    "max_matching_ngram_size",
    "use_rejection_sampling",
    "enable_penalty",
    "load_format",
    "acceptance_window",
    "acceptance_length_threshold",
    "acceptance_rate_window_size",
    "acceptance_rate_threshold",
    "use_mtp_vanilla",
    "eagle3_layers_to_capture",
    "is_keep_all",
    "is_use_oldest",
    "is_public_pool",
    "global_pool_size",
    "mask_token_id",
    "target_layer_ids",
    "moe_backend",
    "output_directory",
    "write_interval",
    "max_window_size",
    "max_ngram_size",
    "max_verification_set_size",
)
SCHEDULED = frozenset({"Eagle3", "MTP", "PARD", "DFlash", "Draft_Target", "SA"})


def resolve(reading: Reading) -> None:
    """Fill `reading.effective`, `changes` and `notes`."""
    reading.around.tidy()
    name = reading.notes.get("type")
    reading.notes["draft"] = reading.around.facts(reading.get("speculative_model"))
    effective: dict[str, Any] = {"decoding_type": name}
    reading.effective = effective
    if reading.off or name is None:
        return
    new = is_new(reading.release)
    if new and name == "Eagle":
        effective["decoding_type"] = "Eagle3"
        reading.change(
            "SPC301",
            "decoding_type",
            "Eagle",
            "Eagle3",
            "Eagle is the older name; heads of EAGLE 1 and 2 do not fit",
            "write decoding_type: Eagle3",
        )
    if not new and name == "DraftTarget":
        effective["decoding_type"] = "Draft_Target"
    effective["max_draft_len"] = _length(reading, name, new)
    for key in PLAIN:
        if reading.given(key):
            effective[key] = reading.get(key)
    _budget(reading, effective, name, new)
    _defaults(reading, effective, name, new)
    _concurrency(reading, effective, new)
    effective["max_batch_size"] = reading.around.args.get("max_batch_size", 2048)
    effective["disable_overlap_scheduler"] = bool(reading.around.args.get("disable_overlap_scheduler", False))
    if "cuda_graph_config" in reading.around.args and reading.around.args["cuda_graph_config"] is None:
        effective["cuda_graph_config"] = None
    _auto(effective, name)
    _save_state(reading, effective, name)


def _length(reading: Reading, name: str, new: bool) -> int | None:
    length, layers = reading.get("max_draft_len"), reading.get("num_nextn_predict_layers")
    if name != "MTP":
        return _static_depth(reading, name) or (length if length is None else int(length))
    if not new:
        used = layers if layers is not None else 1
        reading.notes["mtp_budget"] = layers is not None
        if length is not None and length != used:
            reading.change(
                "SPC323",
                "max_draft_len",
                length,
                used,
                "this release drafts num_nextn_predict_layers tokens (default 1)",
                f"write num_nextn_predict_layers: {length}",
            )
        return int(used)
    if layers is not None:
        if length is None:
            reading.change(
                "SPC301",
                "num_nextn_predict_layers",
                layers,
                layers,
                "this name is deprecated; it is read as max_draft_len",
                f"write max_draft_len: {layers}",
            )
            return int(layers)
        why = f"max_draft_len {length} wins" if length != layers else "this name is deprecated"
        code = "SPC323" if length != layers else "SPC301"
        reading.change(code, "num_nextn_predict_layers", layers, None, why, "leave it out")
    return None if length is None else int(length)


def _static_depth(reading: Reading, name: str) -> int | None:
    """The depth of an Eagle's static tree, which the engine drafts whatever `max_draft_len` says."""
    tree = static_tree(reading) if name == "Eagle" else None
    if tree is None or tree.depth is None:
        return None
    if reading.get("max_draft_len") not in (None, tree.depth):
        why = f"eagle_choices are {tree.depth} deep"
        given = reading.get("max_draft_len")
        reading.change("SPC323", "max_draft_len", given, tree.depth, why, f"write max_draft_len: {tree.depth}")
    return tree.depth


def _budget(reading: Reading, effective: dict[str, Any], name: str, new: bool) -> None:
    """`max_total_draft_tokens`: kept for dynamic trees of 1.4 only."""
    given, length = reading.get("max_total_draft_tokens"), effective["max_draft_len"]
    topk = reading.get("dynamic_tree_max_topK")
    if new and name in TREES and reading.get("use_dynamic_tree"):
        effective["dynamic_tree_max_topK"] = topk
        total = given if given is not None else topk * length if topk and length else None
        effective["max_total_draft_tokens"] = total
        return
    if new and topk is not None and name in TREES:
        reading.change(
            "SPC323", "dynamic_tree_max_topK", topk, None, "use_dynamic_tree is off", "add use_dynamic_tree: true"
        )
    elif topk is not None:
        effective["dynamic_tree_max_topK"] = topk
    total = length if not (name == "MTP" and not new and not reading.notes.get("mtp_budget")) else None
    if name in ("AUTO", "Lookahead"):
        total = None
    if new and given is not None and name in EAGLES:
        total = given
    effective["max_total_draft_tokens"] = total
    if given is not None and given != total:
        reading.change("SPC323", "max_total_draft_tokens", given, total, "it follows the draft length", "leave it out")


def _defaults(reading: Reading, effective: dict[str, Any], name: str, new: bool) -> None:
    if name in EAGLES:
        effective["eagle3_model_arch"] = reading.get("eagle3_model_arch", "llama3")
    if name == "MTP" and not new:
        effective["num_nextn_predict_layers"] = effective["max_draft_len"]
    if name == "NGram" and "max_matching_ngram_size" not in effective:
        effective["max_matching_ngram_size"] = 2 if new else 0
    if name == "NGram":
        effective.setdefault("is_public_pool", True)
    if name == "SA":
        effective.setdefault("max_matching_ngram_size", -1)
    if name == "DSpark":
        effective["block_size"] = reading.get("block_size", effective["max_draft_len"])
    if name in ("DFlash", "DSpark"):
        effective["attention_backend"] = reading.get("attention_backend", "VANILLA")
    config = reading.get("sa_config")
    if isinstance(config, dict):
        effective["sa_config"] = {"threshold": 4, "enable_global_pool": False} | config
    if "draft_len_schedule" in effective:
        schedule = effective["draft_len_schedule"]
        effective["draft_len_schedule"] = {str(key): schedule[key] for key in sorted(schedule)}


def _concurrency(reading: Reading, effective: dict[str, Any], new: bool) -> None:
    limit = effective.get("max_concurrency")
    if (
        new
        and limit is not None
        and effective["decoding_type"] in SCHEDULED
        and not reading.given("draft_len_schedule")
    ):
        effective["draft_len_schedule"] = {str(limit): effective["max_draft_len"]}


def _auto(effective: dict[str, Any], name: str) -> None:
    if name == "AUTO":
        small = effective["max_batch_size"] <= 4 if isinstance(effective["max_batch_size"], int) else False
        effective["becomes"] = {
            "method": "NGram",
            "max_draft_len": 5 if small else 3,
            "max_matching_ngram_size": 3 if small else 5,
            "max_concurrency": 32,
        }
        effective["max_draft_len"] = effective["max_total_draft_tokens"] = None


def _save_state(reading: Reading, effective: dict[str, Any], name: str) -> None:
    if name != "SaveState":
        return
    effective |= {
        "max_draft_len": 1,
        "max_total_draft_tokens": 1,
        "max_batch_size": 1,
        "disable_overlap_scheduler": True,
        "cuda_graph_config": None,
    }
    reading.change(
        "SPC323",
        "max_batch_size",
        reading.around.args.get("max_batch_size", 2048),
        1,
        "SaveState runs one request at a time, without overlap and CUDA graphs",
    )
