"""Static trees as users write them: a list of paths, or a text that holds one."""

from __future__ import annotations

import ast
from typing import Any

from specctl.dialects.coerce import BadValue
from specctl.dialects.reading import Reading
from specctl.spec import Tree

MAX_TEXT = 100_000
# TensorRT-LLM's key of a static tree by decoding type, while it had static trees.
KEYS = {"Eagle": "eagle_choices", "Medusa": "medusa_choices"}


def read_choices(raw: Any) -> tuple[tuple[int, ...], ...]:
    """The paths of `[[0], [1], [0, 0]]` or of a text such as `[(0,), (1,), (0, 0)]`, by length and then in order, each
    once. Raises BadValue for anything else.
    """
    value = _parsed(raw) if isinstance(raw, str) else raw
    if not isinstance(value, (list, tuple)) or not value:
        raise BadValue("a list of paths")
    for path in value:
        if not isinstance(path, (list, tuple)) or not path:
            raise BadValue("a list of paths, each a list of ranks")
        if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in path):
            raise BadValue("a list of paths, each a list of whole numbers")
    return tuple(sorted({tuple(path) for path in value}, key=lambda path: (len(path), path)))


def _parsed(text: str) -> Any:
    try:
        return ast.literal_eval(text) if len(text) <= MAX_TEXT else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def static_tree(reading: Reading) -> Tree | None:
    """The static tree of a TensorRT-LLM setting; None where there is none, or none that can be."""
    key = KEYS.get(str(reading.notes.get("type")))
    raw = reading.get(key) if key else None
    if raw is None or reading.get("use_dynamic_tree"):
        return None
    try:
        tree = Tree(choices=read_choices(raw))
    except BadValue:
        return None
    return None if tree.fault else tree


def written(tree: Tree, name: str, dynamic: frozenset[str], new: bool) -> dict[str, Any]:
    """TensorRT-LLM's keys of a tree for decoding type `name`; `dynamic`: the types with dynamic trees, `new`: a release
    without static ones. Empty where they cannot say it.
    """
    if tree.choices:
        paths = [list(path) for path in tree.choices]
        if new or name not in KEYS:
            return {}
        return {KEYS[name]: paths} | ({"max_draft_len": len(paths)} if name == "Medusa" else {})
    if name not in dynamic:
        return {}
    budget = {} if tree.num_nodes is None else {"max_total_draft_tokens": tree.num_nodes}
    return {"use_dynamic_tree": True, "dynamic_tree_max_topK": tree.topk} | budget
