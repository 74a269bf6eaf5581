"""The proposer behind a fence: what it throws ends drafting for one request, and nothing else."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from collections.abc import Sequence as Many
from typing import Protocol, runtime_checkable

from torch import Tensor

from specctl.runtime.draft import NO_DRAFT, Draft, Proposer, cut
from specctl.runtime.sequence import Sequence

log = logging.getLogger("specctl.runtime")


@runtime_checkable
class Carrying(Protocol):
    """A proposer whose own memory can begin with what another slot holds."""

    def carry(self, source: int, slot: int, count: int) -> int:
        """Copy what is held of the first ``count`` tokens of ``source`` into ``slot`` (they may be the same).

        Answers how many tokens the target may leave uncomputed at the beginning of a sequence that starts there.
        """
        ...


class Drafting:
    """``num_failures``: requests for which the proposer was switched off because it threw."""

    def __init__(self, proposer: Proposer | None, vocab_size: int) -> None:
        self.proposer = proposer
        self.num_failures = 0
        self._vocab_size = vocab_size

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        return self.proposer.hidden_layers if self.proposer else ()

    @property
    def shares_prefixes(self) -> bool:
        """Whether a sequence can begin with tokens that the target does not compute for it."""
        return not self.hidden_layers or isinstance(self.proposer, Carrying)

    def carry(self, source: int, slot: int, count: int) -> int:
        """See `Carrying`; what needs no memory of the prompt, or makes its own from the tokens, carries all."""
        return self.proposer.carry(source, slot, count) if isinstance(self.proposer, Carrying) else count

    def start(self, sequence: Sequence) -> None:
        """A sequence has its slot."""
        if (proposer := self._for(sequence)) is not None:
            self._guard(sequence, "start", lambda: proposer.start(sequence))

    def observe(self, sequence: Sequence, hidden: Tensor | None) -> None:
        """A sequence got tokens, or a chunk of its prompt was computed."""
        if (proposer := self._for(sequence)) is not None:
            self._guard(sequence, "observe", lambda: proposer.observe(sequence, hidden))

    def finish(self, sequence: Sequence) -> None:
        """A sequence leaves its slot."""
        if (proposer := self._for(sequence)) is not None:
            self._guard(sequence, "finish", lambda: proposer.finish(sequence))

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """One draft a sequence; where the proposer throws, each is asked for alone, to find out whose fault it is."""
        wanted = [(s, limit) for s, limit in zip(sequences, limits, strict=True) if self._for(s) is not None]
        if self.proposer is None or not wanted:
            return [NO_DRAFT] * len(sequences)
        try:
            drafts = self.proposer.propose([s for s, _ in wanted], [limit for _, limit in wanted])
        except Exception:
            drafts = [self._alone(self.proposer, s, limit) for s, limit in wanted]
        found = {id(s): self._sound(s, d, limit) for (s, limit), d in zip(wanted, drafts, strict=True)}
        return [found.get(id(s), NO_DRAFT) for s in sequences]

    def _alone(self, proposer: Proposer, sequence: Sequence, limit: int) -> Draft:
        found = [NO_DRAFT]

        def ask() -> None:
            found[:] = proposer.propose([sequence], [limit])

        self._guard(sequence, "propose", ask)
        return found[0]

    def _sound(self, sequence: Sequence, draft: Draft, limit: int) -> Draft:
        """The draft as far as its grammar goes; none where a target could not even read it."""
        wrong = [token for token in draft.tokens if not 0 <= token < self._vocab_size]
        if wrong or draft.depth > max(0, limit):
            fault = f"token id {wrong[0]}" if wrong else f"{draft.depth} tokens where {limit} fit"
            self._switch_off(sequence, "propose", ValueError(f"the draft has {fault}"))
            return NO_DRAFT
        return cut(draft, sequence.grammar) if sequence.grammar and draft.tokens else draft

    def _for(self, sequence: Sequence) -> Proposer | None:
        return self.proposer if sequence.drafting else None

    def _guard(self, sequence: Sequence, deed: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self._switch_off(sequence, deed, error)

    def _switch_off(self, sequence: Sequence, deed: str, error: Exception) -> None:
        sequence.drafting = False
        self.num_failures += 1
        log.error(
            "request=%s goes on without drafts: the proposer failed in %s: %s: %s",
            sequence.request.id,
            deed,
            type(error).__name__,
            error,
            exc_info=error if self.num_failures == 1 else None,  # the same traceback a thousand times helps nobody
        )
        if self.proposer is not None:
            with contextlib.suppress(Exception):  # it is broken already; what it still holds should go
                self.proposer.finish(sequence)
