"""Suffix decoding (Oliaro et al., arXiv 2411.04975): follow what most often followed the last tokens, in this request's
own text and in the answers of earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass

from torch import Tensor

from specctl.runtime.draft import NO_DRAFT, Draft
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.suffix_tree import GrowingText, SuffixTree
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Suffix

MAX_DRAFTED = 128


@dataclass
class _Own:
    """What is kept for one running sequence: its tree over prompt and output, and its answer in the shared tree."""

    tree: SuffixTree
    text: GrowingText
    answer: GrowingText


class SuffixProposer:
    """One tree a request over prompt and output, one tree over all answers, prompts never among them.

    The shared tree forgets whole requests, the oldest first, once it holds ``method.max_cached_requests``.
    """

    notes: tuple[str, ...] = ()
    hidden_layers: tuple[int, ...] = ()

    def __init__(self, k: int, method: Suffix, offset: float = 0.0) -> None:
        self._k = k
        self._method = method
        self._offset = offset
        self._own: dict[int, _Own] = {}
        self._shared = SuffixTree(method.max_tree_depth)
        # In the order in which the requests came; keys and values are the same objects, a dict is an ordered set here.
        self._answers: dict[int, GrowingText] = {}

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> SuffixProposer:
        """k is the tree's depth where the setting names none, as in vLLM. Raises SpecctlError for a k out of range."""
        method = spec.method
        assert isinstance(method, Suffix), "the table maps names to their own classes"
        if spec.num_speculative_tokens is None:
            return cls(min(method.max_tree_depth, MAX_DRAFTED), method)
        return cls(drafted_tokens(spec, MAX_DRAFTED), method)

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._k

    def start(self, sequence: Sequence) -> None:
        """The prompt enters the request's own tree."""
        own = _Own(SuffixTree(self._method.max_tree_depth), GrowingText(), GrowingText())
        self._own[sequence.slot] = own
        own.tree.extend(own.text, sequence.tokens)
        if self._method.max_cached_requests > 0:
            self._answers[id(own.answer)] = own.answer
            while len(self._answers) > self._method.max_cached_requests:
                oldest = next(iter(self._answers))
                self._shared.remove(self._answers.pop(oldest))

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """The better of the two trees' walks, the request's own where they are equal; empty where nothing matches."""
        return [self._propose(sequence, limit) for sequence, limit in zip(sequences, limits, strict=True)]

    def _propose(self, sequence: Sequence, limit: int) -> Draft:
        most, method = min(self._k, limit), self._method
        if most < 1:
            return NO_DRAFT
        context = sequence.tokens[-method.max_tree_depth :]
        trees = [self._own[sequence.slot].tree, *([self._shared] if self._answers else [])]
        walks = [
            tree.speculate(context, most, method.max_spec_factor, self._offset, method.min_token_prob) for tree in trees
        ]
        return Draft(list(max(walks, key=lambda walk: walk.score).tokens))

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """New tokens enter the request's own tree and, as its answer, the shared one."""
        own = self._own[sequence.slot]
        fresh = sequence.tokens[len(own.text.tokens) :]
        own.tree.extend(own.text, fresh)
        if id(own.answer) in self._answers:  # a running request may itself have become the oldest
            self._shared.extend(own.answer, fresh)

    def finish(self, sequence: Sequence) -> None:
        """The answer's last tokens enter the shared tree; the request's own tree goes."""
        if sequence.slot in self._own:
            self.observe(sequence)
            del self._own[sequence.slot]

    def forget(self) -> None:
        """The answers of earlier requests go."""
        self._shared = SuffixTree(self._method.max_tree_depth)
        self._answers = {}
