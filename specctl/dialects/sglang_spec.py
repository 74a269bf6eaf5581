"""The canonical spec of an SGLang setting, from its resolved numbers."""

from __future__ import annotations

from typing import Any

from specctl.dialects.field import assemble, default_at, has_path
from specctl.dialects.reading import Reading
from specctl.dialects.sglang import ENGINE
from specctl.spec import Method, Origin, SpecDecodeConfig, Tree
from specctl.spec.methods import DFlash, DraftModel, DSpark, Eagle, Eagle3, Mtp, Ngram, Uno

_COUNTED = frozenset(
    {
        "speculative_algorithm",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "speculative_dflash_block_size",
        "speculative_dspark_block_size",
        "speculative_use_rejection_sampling",
        "speculative_use_block_verification",
    }
)


def build(reading: Reading) -> SpecDecodeConfig | None:
    """None where speculation is off or the algorithm is unknown."""
    name = reading.notes.get("algorithm")
    method = _method(reading, name)
    if method is None:
        return None
    found: dict[str, Any] = {}
    carried: dict[str, Any] = {}
    for key, value in reading.values.items():
        if value.value is None or not value.good:
            continue
        if key in _COUNTED:
            if _beside(reading, key, str(name)):
                carried[key] = value.value
            continue
        known = value.row.dump is None or value.row.dump(value.value) is not None
        if known and value.row.path and has_path(type(method), value.row.path):
            found[value.row.path] = value.value
        elif value.value is not False or key == "speculative_enable_w4a4_mxfp4_megamoe":
            carried[key] = value.value
    if name == "FROZEN_KV_MTP" and str(reading.get("speculative_algorithm")).upper() == "FROZEN_KV_MTP":
        carried["speculative_algorithm"] = "FROZEN_KV_MTP"
    _sampling(reading, found, str(name))
    model = found.pop("model", None)
    if not (method.needs_model or method.optional_model) and model is not None:
        carried["speculative_draft_model_path"], model = model, None
    count, tree = _count(reading, str(name))
    origin = Origin(reading.document.source, ENGINE, reading.release)
    spec = assemble(
        method,
        found,
        model=model,
        num_speculative_tokens=count,
        tree=tree,
        origin=origin,
        engine_options={ENGINE: carried} if carried else {},
    )
    assert all(default_at(spec, path) is not ... for path in found)
    return spec


def _beside(reading: Reading, key: str, name: str) -> bool:
    """Whether one of the three numbers says something that the count of drafted tokens does not: the depth of NGRAM's
    lookups, UNO's tree."""
    value = reading.get(key)
    if name == "NGRAM" and key == "speculative_num_steps":
        width, breadth = (
            reading.effective.get(each) for each in ("speculative_num_draft_tokens", "speculative_eagle_topk")
        )
        return bool(width and breadth and value != width // breadth)
    tree = name == "UNO" and reading.effective.get("speculative_eagle_topk") not in (None, 1)
    return tree and key in ("speculative_num_steps", "speculative_eagle_topk")


def _method(reading: Reading, name: str | None) -> Method | None:
    draft = reading.get("speculative_draft_model_path")
    if name == "NGRAM":
        depth = reading.get("speculative_ngram_max_trie_depth", 18)
        return Ngram(1, max(int(depth) - 1, 1), search="trie", shared_pool=True)
    if name == "EAGLE" and (draft is None or str(reading.get("speculative_algorithm", "")).upper() == "NEXTN"):
        return Mtp()
    table: dict[str, Method] = {
        "EAGLE": Eagle(),
        "EAGLE3": Eagle3(),
        "STANDALONE": DraftModel(),
        "DFLASH": DFlash(),
        "DSPARK": DSpark(),
        "UNO": Uno(),
        "FROZEN_KV_MTP": Mtp(),
    }
    return table.get(str(name))


def _sampling(reading: Reading, found: dict[str, Any], name: str) -> None:
    if reading.get("speculative_use_block_verification"):
        found["acceptance.method"] = "block"
    rejection = reading.get("speculative_use_rejection_sampling") or (
        reading.get("speculative_use_block_verification") and name in ("EAGLE", "EAGLE3")
    )
    if rejection:
        found["draft_sample_method"] = "probabilistic"


def _count(reading: Reading, name: str) -> tuple[int | None, Tree | None]:
    """k and the tree: depth and drafted nodes; a chain has no tree."""
    steps, topk = reading.effective.get("speculative_num_steps"), reading.effective.get("speculative_eagle_topk")
    width = reading.effective.get("speculative_num_draft_tokens")
    if name in ("NGRAM", "DFLASH", "DSPARK", "UNO"):
        return (max(width - 1, 0) if width is not None else None), None
    if topk is not None and topk > 1 and steps is not None:
        return steps, Tree(topk, width - 1 if width is not None else None)
    return steps, None
