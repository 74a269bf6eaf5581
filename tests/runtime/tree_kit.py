"""Trees for tests: shapes, plain references of how they are drafted, and drafts of which a wanted number is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from torch import Tensor

from specctl.runtime.draft import ROOT, Draft, node_depths
from specctl.runtime.sampling import Randomness
from specctl.runtime.sequence import Sequence
from specctl.runtime.text import TextStream
from specctl.spec.config import Tree
from tests.runtime.kit import ask

STATIC = Tree(choices=((0,), (1,), (3,), (0, 0), (0, 2), (1, 0), (0, 0, 0), (0, 0, 1), (1, 0, 0), (0, 0, 0, 0)))
DYNAMIC = Tree(topk=3, num_nodes=8)
DEPTH = 4


def random_parents(dice: random.Random, size: int) -> tuple[int, ...]:
    """A tree of ``size`` nodes, deep rather than wide."""
    return tuple(max(ROOT, node - 1 - int(dice.expovariate(0.6))) for node in range(size))


def standing(slot: int, tokens: list[int], **sampling: Any) -> Sequence:
    """A sequence all of whose tokens but the newest are computed."""
    text = TextStream(lambda *_, **__: "", ())
    request, computed = ask(f"{slot}", tokens, **sampling), len(tokens) - 1
    return Sequence(request, list(tokens), Randomness(slot), text, slot=slot, num_computed=computed)


def plain_tree(tree: Tree, depth: int, scores: Callable[[list[int]], Tensor]) -> list[list[int]]:
    """The token paths of a tree, written straight from its definition; ``scores(path)``: what follows a path."""
    return _dynamic(tree, depth, scores) if tree.topk else _static(tree, depth, scores)


def _static(tree: Tree, depth: int, scores: Callable[[list[int]], Tensor]) -> list[list[int]]:
    found: dict[tuple[int, ...], list[int]] = {(): []}
    for path in sorted(tree.choices, key=len):
        if len(path) <= depth:
            ranked = scores(found[path[:-1]]).argsort(descending=True)
            found[path] = [*found[path[:-1]], int(ranked[path[-1]])]
    return [tokens for tokens in found.values() if tokens]


def _dynamic(tree: Tree, depth: int, scores: Callable[[list[int]], Tensor]) -> list[list[int]]:
    """Of equal scores the older wins, so that a certain token never stands without the one before it."""
    frontier: list[tuple[float, list[int]]] = [(0.0, [])]
    nodes: list[tuple[float, list[int]]] = []
    for _ in range(depth):
        fresh = []
        for score, path in frontier:
            best = scores(path).log_softmax(-1).topk(tree.topk or 0)
            pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
            fresh += [(score + log, [*path, token]) for log, token in pairs]
        nodes += fresh
        chosen = sorted(fresh, key=lambda node: -node[0])[: tree.topk]
        frontier = [node for node in fresh if node in chosen]
    return [path for _, path in sorted(nodes, key=lambda node: -node[0])[: tree.num_nodes]]


def taught(draft: Draft, right: list[int], count: int, dice: random.Random) -> Draft:
    """``draft`` with other tokens, so that the target, whose next tokens are ``right``, accepts ``count`` of them at
    most, along a path that chance picks.
    """
    if not draft.tokens:
        return draft
    parents = range(ROOT, len(draft.tokens) - 1) if draft.parents is None else draft.parents
    depths = node_depths(parents)
    deep = [node for node, depth in enumerate(depths) if depth == max(depths)]
    path, node = [], dice.choice(deep)
    while node != ROOT:
        path.append(node)
        node = parents[node]
    known = set(path[::-1][: min(count, len(right))])
    tokens = []
    for node, depth in enumerate(depths):
        wanted = right[depth - 1] if depth <= len(right) else 0
        # Siblings must differ, so each wrong token stands another way off.
        tokens.append(wanted if node in known else (wanted + 1 + node) % 256)
    return Draft(tokens, None, draft.parents)


def bushy(draft: Draft) -> Draft:
    """A chain as a tree: one more leaf beside each of its tokens."""
    size = len(draft.tokens)
    beside = [(token + 1) % 256 for token in draft.tokens]
    parents = (*range(ROOT, size - 1), *range(ROOT, size - 1))
    return Draft([*draft.tokens, *beside], None, parents)
