"""A suffix tree over growing texts, cut at a depth, with the number of occurrences at each node.

A suffix that nobody else shares is one leaf that points into its text and grows with it by itself; only where a second
occurrence arrives does the path become nodes. So a new token costs a step for each suffix that has occurred before, and
memory grows with what repeats, not with text times depth.

    "a b c a b"      root -- a (2) -- b (2) -- leaf "c a b"
                       |---- b (2) -- leaf "c a b"
                       `---- leaf "c a b"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count


class GrowingText:
    """One text in a tree: its tokens, and the (depth, node) places where those of its suffixes end now that are nodes;
    all others end in leaves.
    """

    __slots__ = ("ends", "tokens")

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.ends: list[tuple[int, Node]] = []


class Node:
    """``count`` suffixes pass through. A leaf (``children`` None) goes on along ``text`` from ``at``.

    ``best``: the most frequent child, of equals the one whose ``rank`` says that it came first.
    """

    __slots__ = ("at", "best", "children", "count", "rank", "text")

    def __init__(self, text: GrowingText, at: int, rank: int) -> None:
        self.count = 1
        self.text = text
        self.at = at
        self.rank = rank
        self.children: dict[int, Node] | None = None
        self.best = -1

    def open(self, depth: int) -> dict[int, Node]:
        """The children; a leaf becomes an inner node whose only child is the rest of its text."""
        if self.children is None:
            self.children = {}
            if self.at < len(self.text.tokens):
                self.best = self.text.tokens[self.at]
                self.children[self.best] = Node(self.text, self.at + 1, self.rank)
            else:  # the text ends right here and may go on: this is no longer a leaf that grows by itself
                self.text.ends.append((depth, self))
        return self.children

    def prefer(self, token: int, child: Node) -> None:
        """Note that ``child`` has gained an occurrence."""
        assert self.children is not None
        leader = self.children.get(self.best)
        if leader is None or (child.count, -child.rank) > (leader.count, -leader.rank):
            self.best = token

    def lead_again(self) -> None:
        """Find the leading child anew, after one has lost an occurrence."""
        assert self.children is not None
        order = {token: (child.count, -child.rank) for token, child in self.children.items()}
        self.best = max(order, key=order.__getitem__, default=-1)


@dataclass(frozen=True)
class Walk:
    """``tokens`` that usually follow; ``probs[i]``: estimated chance that the first i + 1 all do; ``match``: tokens of
    context found in the tree.
    """

    tokens: tuple[int, ...] = ()
    probs: tuple[float, ...] = ()
    match: int = 0

    @property
    def score(self) -> float:
        """Expected number of tokens that will be right."""
        return sum(self.probs)


class SuffixTree:
    """All suffixes of all its texts down to ``depth`` tokens."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._ranks = count()
        self._root = Node(GrowingText(), 0, 0)
        self._root.open(0)

    def extend(self, text: GrowingText, tokens: Sequence[int]) -> None:
        """Append ``tokens`` to ``text``, which is new or already in this tree."""
        for token in tokens:
            text.tokens.append(token)
            before, text.ends = text.ends, []
            for depth, node in (*before, (0, self._root)):
                self._pass(node, depth + 1, token, text)

    def _pass(self, node: Node, depth: int, token: int, text: GrowingText) -> None:
        """One more occurrence of ``token`` behind ``node``, so at ``depth``."""
        assert node.children is not None
        child = node.children.get(token)
        if child is None:
            child = node.children[token] = Node(text, len(text.tokens), next(self._ranks))
        else:
            child.count += 1
            if depth < self.depth:
                child.open(depth)
                text.ends.append((depth, child))
        node.prefer(token, child)

    def remove(self, text: GrowingText) -> None:
        """Take ``text`` out again, in O(len(text) * depth)."""
        tokens = text.tokens
        for begin in range(len(tokens)):
            self._remove_suffix(tokens[begin : begin + self.depth])

    def _remove_suffix(self, tokens: Sequence[int]) -> None:
        node = self._root
        for token in tokens:
            if node.children is None:
                return
            child = node.children[token]
            child.count -= 1
            if child.count == 0:
                del node.children[token]
            if token == node.best:  # only a weakened leader can lose its place
                node.lead_again()
            if child.count == 0:
                return
            node = child

    def speculate(self, context: Sequence[int], most: int, factor: float, offset: float, min_prob: float) -> Walk:
        """The walk with the highest score over all suffixes of ``context`` that occur; of equals the longest match.

        A match of m tokens may draft ``int(m * factor + offset)`` tokens, at most ``most``.
        """
        best = Walk()
        for match in range(1, min(len(context), self.depth - 1) + 1):
            place = self._find(context[-match:])
            if place is None:
                break  # what contains it cannot occur either
            budget = min(most, int(match * factor + offset + 1e-6), self.depth - match)
            tokens, probs = _follow(*place, budget, min_prob)
            walk = Walk(tuple(tokens), tuple(probs), match)
            if tokens and walk.score >= best.score:
                best = walk
        return best

    def _find(self, tokens: Sequence[int]) -> tuple[Node, int] | None:
        """The node that ``tokens`` lead to, and how far beyond it along its text where it is a leaf."""
        node = self._root
        for place, token in enumerate(tokens):
            if node.children is None:
                rest = tokens[place:]
                end = node.at + len(rest)
                return (node, len(rest)) if node.text.tokens[node.at : end] == list(rest) else None
            child = node.children.get(token)
            if child is None:
                return None
            node = child
        return node, 0


def _follow(node: Node, beyond: int, budget: int, min_prob: float) -> tuple[list[int], list[float]]:
    """The most frequent path from a place in the tree and the chance of each of its beginnings."""
    tokens: list[int] = []
    probs: list[float] = []
    prob = 1.0
    while len(tokens) < budget:
        if node.children is None:
            # One occurrence alone: what follows it follows with certainty.
            begin = node.at + beyond
            rest = node.text.tokens[begin : begin + budget - len(tokens)]
            return tokens + rest, probs + [prob] * len(rest)
        child = node.children.get(node.best)
        if child is None:
            break
        prob *= child.count / node.count
        if prob < min_prob:
            break
        tokens.append(node.best)
        probs.append(prob)
        node = child
    return tokens, probs
