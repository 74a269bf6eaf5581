"""N-gram lookup: what followed the last tokens earlier in prompt and output."""

from __future__ import annotations

from collections.abc import Sequence as Many

from torch import Tensor

from specctl.runtime.draft import NO_DRAFT, Draft
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Ngram

MAX_DRAFTED = 128
OWN_TEXT_ONLY = (
    "the engine of this setting looks for n-grams in a pool shared by all requests; the bundled runtime looks only "
    "into the request's own text, so its acceptance differs"
)
ONE_CHAIN = (
    "the engine of this setting may draft a tree from its trie; the bundled runtime drafts one chain, so more of its "
    "drafted tokens are rejected at the first place"
)


class NgramIndex:
    """Where each n-gram of one sequence ends first (or last), for every length in [shortest, longest].

    Grows by one token in O(longest - shortest + 1), so a lookup never scans the sequence.
    """

    def __init__(self, shortest: int, longest: int, latest: bool) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._latest = latest
        self._ends: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def extend(self, tokens: list[int]) -> None:
        """Index the n-grams that end before the newest token: a match must have a token behind it."""
        for end in range(self._indexed + 1, len(tokens)):
            for length in self._lengths:
                if length <= end:
                    gram = tuple(tokens[end - length : end])
                    if self._latest or gram not in self._ends:
                        self._ends[gram] = end
        self._indexed = max(self._indexed, len(tokens) - 1)

    def find(self, tokens: list[int]) -> int | None:
        """Where the continuation of the longest matching suffix of ``tokens`` begins, or None."""
        for length in self._lengths:
            if length < len(tokens):
                end = self._ends.get(tuple(tokens[-length:]))
                if end is not None:
                    return end
        return None


class NgramProposer:
    """vLLM's rule (v1/spec_decode/ngram_proposer.py): the longest suffix of length min..max that occurred before
    wins, and of its occurrences the earliest; transformers' prompt lookup searches the same way from its own upper
    bound down to 1.
    """

    hidden_layers: tuple[int, ...] = ()

    def __init__(self, k: int, shortest: int, longest: int, latest: bool = False) -> None:
        self._k = k
        self._bounds = (shortest, longest, latest)
        self._indexes: dict[int, NgramIndex] = {}
        self.notes: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> NgramProposer:
        """Raises SpecctlError for a k that is out of range."""
        method = spec.method
        assert isinstance(method, Ngram), "the table maps names to their own classes"
        shortest = 1 if method.search == "transformers" else method.prompt_lookup_min
        k = drafted_tokens(spec, MAX_DRAFTED)
        proposer = cls(k, shortest, method.prompt_lookup_max, latest=method.search == "latest")
        if method.shared_pool or method.search == "trie":
            proposer.notes = (OWN_TEXT_ONLY,) + ((ONE_CHAIN,) if method.search == "trie" else ())
        return proposer

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._k

    def start(self, sequence: Sequence) -> None:
        self._indexes[sequence.slot] = NgramIndex(*self._bounds)

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """Up to k tokens that followed the match; empty where nothing matches."""
        return [self._propose(sequence, limit) for sequence, limit in zip(sequences, limits, strict=True)]

    def _propose(self, sequence: Sequence, limit: int) -> Draft:
        index = self._indexes[sequence.slot]
        index.extend(sequence.tokens)
        begin = index.find(sequence.tokens)
        if begin is None or limit < 1:
            return NO_DRAFT
        return Draft(sequence.tokens[begin : begin + min(self._k, limit)])

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Nothing to roll back: only accepted tokens are ever indexed."""

    def finish(self, sequence: Sequence) -> None:
        self._indexes.pop(sequence.slot, None)

    def forget(self) -> None:
        """Nothing outlives a request."""
