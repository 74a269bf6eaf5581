"""The canonical spec of a TensorRT-LLM setting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specctl.dialects.choices import KEYS, static_tree
from specctl.dialects.field import assemble, has_path
from specctl.dialects.reading import Reading
from specctl.dialects.trtllm import ENGINE, THINKING_BEGIN, THINKING_END, TREES
from specctl.dialects.trtllm_line import is_new, load_schedule
from specctl.spec import METHODS, Method, Origin, SpecDecodeConfig, Tree
from specctl.spec.methods import Ngram

_SPECIAL = frozenset(
    {
        "decoding_type",
        "max_draft_len",
        "num_nextn_predict_layers",
        "draft_len_schedule",
        "is_public_pool",
        "is_use_oldest",
        "use_rejection_sampling",
        "use_dynamic_tree",
        "dynamic_tree_max_topK",
        "max_total_draft_tokens",
        "use_relaxed_acceptance_for_thinking",
    }
)


def build(reading: Reading) -> SpecDecodeConfig | None:
    """None where speculation is off."""
    name = reading.notes.get("type")
    if reading.off or name is None:
        return None
    method = _method(reading)
    found: dict[str, Any] = {}
    carried: dict[str, Any] = {}
    for key, value in reading.values.items():
        if key in _SPECIAL or value.value is None or not value.good:
            continue
        if key == "is_keep_all" and value.value is True:
            continue
        if value.row.path and has_path(type(method), value.row.path):
            found[value.row.path] = value.value
        else:
            carried[key] = value.value
    _special(reading, found, carried, str(name))
    model = found.pop("model", None)
    if not (method.needs_model or method.optional_model) and model is not None:
        carried["speculative_model"], model = model, None
    return assemble(
        method,
        found,
        model=model,
        num_speculative_tokens=_count(reading, str(name)),
        tree=_tree(reading, str(name), carried),
        engine_options={ENGINE: carried} if carried else {},
        origin=Origin(reading.document.source, ENGINE, reading.release),
    )


def _method(reading: Reading) -> Method:
    found = METHODS[reading.notes["method"]]
    if found is Ngram:
        size = reading.effective.get("max_matching_ngram_size") or 2
        method = Ngram(1, max(int(size), 1), shared_pool=bool(reading.get("is_public_pool", True)))
        return method if reading.get("is_use_oldest", True) else replace(method, search="latest")
    return found()


def _count(reading: Reading, name: str) -> int | None:
    if name == "SaveState":
        return reading.get("max_draft_len")  # type: ignore[no-any-return]
    static = static_tree(reading)
    if static is not None:
        return static.depth
    length = reading.effective.get("max_draft_len")
    return None if length is None else int(length)


def _special(reading: Reading, found: dict[str, Any], carried: dict[str, Any], name: str) -> None:
    schedule = reading.get("draft_len_schedule")
    if schedule:
        found["schedule"] = load_schedule(schedule, reading.release)
    if reading.get("use_rejection_sampling"):
        found["draft_sample_method"] = "probabilistic"
    if reading.get("use_relaxed_acceptance_for_thinking"):
        found["acceptance.method"] = "relaxed"
        # The engine relaxes between these two, whether they are written or not.
        found.setdefault("acceptance.thinking_begin_token", THINKING_BEGIN)
        found.setdefault("acceptance.thinking_end_token", THINKING_END)
    if name == "NGram":
        found.pop("method.prompt_lookup_max", None)
    if name == "AUTO" and reading.given("max_draft_len"):
        carried["max_draft_len"] = reading.get("max_draft_len")


def _tree(reading: Reading, name: str, carried: dict[str, Any]) -> Tree | None:
    topk, total = reading.get("dynamic_tree_max_topK"), reading.get("max_total_draft_tokens")
    if reading.get("use_dynamic_tree") and topk and name in TREES:
        return Tree(topk, total)
    static = static_tree(reading)
    if static is not None:
        del carried[KEYS[name]]
        # Medusa's draft length counts the nodes; the writer says their number.
        if name == "Medusa" and reading.get("max_draft_len") not in (None, len(static.choices)):
            carried["max_draft_len"] = reading.get("max_draft_len")
        return static
    if topk is not None and not is_new(reading.release):
        carried["dynamic_tree_max_topK"] = topk
    return None
