"""Drafting trees for many sequences at once, one draft forward a depth.

A *shape* says which of a node's candidates become its children, which nodes are expanded at the next depth and which
are verified in the end. A static shape is fixed by the setting; the dynamic one follows the draft's confidence
(EAGLE-2, Li et al. 2406.16858).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Protocol

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.draft import ROOT, Draft
from specctl.runtime.kv_cache import Branches, Span
from specctl.runtime.proposers.chain import Picker
from specctl.runtime.sequence import Sequence
from specctl.spec.config import SpecDecodeConfig

Path = tuple[int, ...]


@dataclass
class GrowingTree:
    """One sequence's tree while it is drafted, in the order in which nodes came. ``paths[i]``: ranks that lead to node
    i; ``scores[i]``: log probability of its path; ``probs[i]``: what it was drawn from, None where it was picked.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    probs: list[Tensor | None] = field(default_factory=list)

    def path(self, node: int) -> Path:
        return () if node == ROOT else self.paths[node]

    def score(self, node: int) -> float:
        return 0.0 if node == ROOT else self.scores[node]

    def draft(self, kept: list[int]) -> Draft:
        """The draft of the nodes ``kept``, each parent before its children."""
        places = {ROOT: ROOT} | {node: place for place, node in enumerate(kept)}
        probs = [drawn for node in kept if (drawn := self.probs[node]) is not None]
        parents = tuple(places[self.parents[node]] for node in kept)
        return Draft([self.tokens[node] for node in kept], torch.stack(probs) if probs else None, parents)


class Shape(Protocol):
    """``depth``: the longest path; ``num_nodes``: drafted tokens at most; ``num_expanded``: nodes that the draft itself
    processes at most.
    """

    depth: int
    num_nodes: int
    num_expanded: int

    def ranks(self, path: Path) -> Many[int]:
        """Which of its candidates, best first, become children of the node at ``path``."""
        ...

    def expanded(self, tree: GrowingTree, fresh: list[int]) -> list[int]:
        """Which of the nodes of the newest depth get children."""
        ...

    def kept(self, tree: GrowingTree) -> list[int]:
        """Which nodes are verified, ascending; with a node its parent, and with a drawn node its siblings."""
        ...


class StaticShape:
    """The same at every step, whatever the draft thinks."""

    def __init__(self, choices: Many[Path]) -> None:
        self._ranks: dict[Path, list[int]] = {}
        for path in sorted(choices):
            self._ranks.setdefault(path[:-1], []).append(path[-1])
        self.depth = max(map(len, choices))
        self.num_nodes = len(choices)
        self.num_expanded = len(self._ranks) - 1

    def ranks(self, path: Path) -> Many[int]:
        return self._ranks[path]

    def expanded(self, tree: GrowingTree, fresh: list[int]) -> list[int]:
        return [node for node in fresh if tree.paths[node] in self._ranks]

    def kept(self, tree: GrowingTree) -> list[int]:
        return list(range(len(tree.tokens)))


class DynamicShape:
    """``topk`` children a node; of a depth's nodes the ``topk`` likeliest are expanded, of all the ``num_nodes``
    likeliest verified.

    Drawn children would be biased by a choice that looks at them, so they are kept or left by whole sets of siblings,
    those of the likeliest parents first: their own values have no part in that.
    """

    def __init__(self, topk: int, num_nodes: int, depth: int) -> None:
        self._topk = topk
        self.depth = depth
        self.num_nodes = num_nodes
        self.num_expanded = topk * (depth - 1)

    def ranks(self, path: Path) -> Many[int]:
        del path
        return range(self._topk)

    def expanded(self, tree: GrowingTree, fresh: list[int]) -> list[int]:
        return sorted(_likeliest(tree, fresh)[: self._topk])

    def kept(self, tree: GrowingTree) -> list[int]:
        if tree.probs and tree.probs[0] is not None:
            return self._kept_siblings(tree)
        return sorted(_likeliest(tree, range(len(tree.tokens)))[: self.num_nodes])

    def _kept_siblings(self, tree: GrowingTree) -> list[int]:
        families: dict[int, list[int]] = {}
        for node, parent in enumerate(tree.parents):
            families.setdefault(parent, []).append(node)
        kept: list[int] = []
        for parent in _likeliest(tree, families):
            if len(kept) + len(families[parent]) > self.num_nodes:
                break
            kept += families[parent]
        return sorted(kept)


def _likeliest(tree: GrowingTree, nodes: Many[int] | Mapping[int, object]) -> list[int]:
    """``nodes``, the likeliest first; a parent is never less likely than its child, and of equals the older stands
    first, so every beginning of the list holds the parents of its nodes.
    """
    return sorted(nodes, key=lambda node: (-tree.score(node), node))


def make_shape(spec: SpecDecodeConfig, depth: int) -> Shape | None:
    """The shape of ``spec``'s trees ``depth`` tokens deep, None for a chain; raises SpecctlError for one that cannot
    be. A dynamic tree without a budget verifies topk nodes a depth, as TensorRT-LLM's does.
    """
    tree = spec.tree
    if tree is None:
        return None
    if tree.fault:
        raise SpecctlError(
            f"the tree {tree.fault}", help="give topk and num_nodes, or choices such as [[0], [1], [0, 0]]"
        )
    if tree.choices:
        if tree.depth != depth:
            raise SpecctlError(
                f"num_speculative_tokens is {depth}, the tree's longest path has {tree.depth} tokens",
                help=f"set num_speculative_tokens: {tree.depth}",
            )
        return StaticShape(tree.choices)
    assert tree.topk is not None, "a tree without a fault has topk or choices"
    most = tree.topk + (depth - 1) * tree.topk**2
    nodes = tree.topk * depth if tree.num_nodes is None else tree.num_nodes
    if not depth <= nodes <= most:
        raise SpecctlError(
            f"the tree has {nodes} nodes; with topk {tree.topk} and {depth} steps it can have {depth} to {most}",
            help="change num_nodes, topk or num_speculative_tokens",
        )
    return DynamicShape(tree.topk, nodes, depth)


@dataclass(frozen=True)
class Twig:
    """A node to expand: whose tree (place among the sequences), which node, its parent and token, and the row of the
    logits that it was picked from.
    """

    owner: int
    node: int
    parent: int
    token: int
    row: int


# Logits [n, draft vocab] of what follows each of n twigs.
Expand = Callable[[list[Twig]], Tensor]


def draft_tree(
    sequences: Many[Sequence], limits: Many[int], logits: Tensor, expand: Expand, picker: Picker, shape: Shape
) -> list[Draft]:
    """A tree for each sequence, at most ``limits[i]`` (at least 1) deep; ``logits`` [n, draft vocab] score the first
    depth of each.
    """
    trees = [GrowingTree() for _ in sequences]
    twigs = [Twig(i, ROOT, ROOT, sequence.tokens[-1], i) for i, sequence in enumerate(sequences)]
    for ahead in count():
        fresh = _branch_out(trees, twigs, [sequences[t.owner] for t in twigs], logits, picker, shape, ahead)
        rows = {(twig.owner, twig.node): row for row, twig in enumerate(twigs)}
        twigs = [
            Twig(i, node, tree.parents[node], tree.tokens[node], rows[i, tree.parents[node]])
            for i, tree in enumerate(trees)
            if ahead + 1 < limits[i]
            for node in shape.expanded(tree, fresh[i])
        ]
        if not twigs:
            break
        logits = expand(twigs)
    return [tree.draft(shape.kept(tree)) for tree in trees]


def _branch_out(
    trees: list[GrowingTree],
    twigs: list[Twig],
    sequences: Many[Sequence],
    logits: Tensor,
    picker: Picker,
    shape: Shape,
    ahead: int,
) -> list[list[int]]:
    """Give each twig its children; the new nodes of each tree."""
    fresh: list[list[int]] = [[] for _ in trees]
    ranks = [shape.ranks(trees[twig.owner].path(twig.node)) for twig in twigs]
    picked = picker.branch(sequences, logits, [max(each) + 1 for each in ranks], [len(each) for each in ranks], ahead)
    for twig, wanted, (candidates, drawn) in zip(twigs, ranks, picked, strict=True):
        tree = trees[twig.owner]
        # Drawn candidates are as many as wanted, in the order of their drawing; picked ones stand by their rank.
        places = range(len(wanted)) if drawn is not None else wanted
        for place, rank in zip(places, wanted, strict=True):
            if place >= len(candidates):
                break
            token, log = candidates[place]
            fresh[twig.owner].append(len(tree.tokens))
            tree.tokens.append(token)
            tree.parents.append(twig.node)
            tree.paths.append((*tree.path(twig.node), rank))
            tree.scores.append(tree.score(twig.node) + log)
            tree.probs.append(drawn)
    return fresh


class Scratch:
    """Where the expanded nodes of growing trees lie in a draft's cache: behind the entries that rest on tokens that
    stand, ``trunks[i]`` of sequence i, one entry a node in the order of their expansion.
    """

    def __init__(self, slots: Many[int], trunks: Many[int]) -> None:
        self._slots = slots
        self._trunks = trunks
        self._sizes = [0] * len(slots)
        self._sights: dict[tuple[int, int], Path] = {}

    def spans(self, twigs: list[Twig]) -> list[Span]:
        """The spans of ``twigs``, which stand together by their owner."""
        spans = []
        for owner, group in groupby(twigs, key=lambda twig: twig.owner):
            sights = []
            for place, twig in enumerate(group, start=self._sizes[owner]):
                seen = (*self._sights.get((owner, twig.parent), ()), place)
                self._sights[owner, twig.node] = seen
                sights.append(seen)
            spans.append(self._span(owner, sights))
        return spans

    def _span(self, owner: int, sights: list[Path]) -> Span:
        trunk, begin = self._trunks[owner], self._sizes[owner]
        self._sizes[owner] = end = begin + len(sights)
        sees = torch.zeros(len(sights), end, dtype=torch.bool)
        for row, seen in enumerate(sights):
            sees[row, list(seen)] = True
        branches = Branches(trunk, tuple(len(seen) - 1 for seen in sights), sees)
        return Span(self._slots[owner], trunk + begin, len(sights), branches)
