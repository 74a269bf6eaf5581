"""Who wrote each row of a cache: a debugging check that finds stale keys and values by name.

A row that a rejected draft wrote, or another request, is as good as any other to the attention that reads it; nothing
but the text, or the acceptance, gets worse. So the ledger remembers the token behind every row, and before rows are
read they are compared with the tokens that stand. `EngineOptions.check_cache` or SPECCTL_CHECK_CACHE=1 switch it on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specctl.runtime.kv_cache import Span

if TYPE_CHECKING:
    from specctl.runtime.batch import Batch
    from specctl.runtime.engine import Engine

log = logging.getLogger("specctl.runtime")

VARIABLE = "SPECCTL_CHECK_CACHE"
MAX_FAULTS = 20


def wanted() -> bool:
    """Whether the environment asks for the check."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


class RowLedger:
    """The tokens behind the rows of one cache; ``whose`` names it in ``faults``, what was found."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._rows: dict[int, dict[int, int]] = {}
        self.faults: list[str] = []

    def wrote(self, tokens: Sequence[int], spans: Sequence[Span], guessed: bool = False) -> None:
        """Rows of ``spans``, in their order. ``guessed``: they rest on a draft's own states, and must not stay."""
        place = 0
        for span in spans:
            written = tokens[place : place + span.count]
            kept = (~token for token in written) if guessed else written
            self._rows.setdefault(span.slot, {}).update(zip(range(span.start, span.end), kept, strict=True))
            place += span.count

    def moved(self, slot: int, start: int, kept: Sequence[int]) -> None:
        """As `KVCache.move`."""
        rows = self._rows.setdefault(slot, {})
        rows.update(zip(range(start, start + len(kept)), [rows[start + row] for row in kept], strict=True))

    def copied(self, source: int, slot: int, count: int) -> None:
        """As `KVCache.copy`."""
        rows = self._rows.get(source, {})
        self._rows.setdefault(slot, {}).update({row: rows[row] for row in range(count) if row in rows})

    def step(self, batch: Batch, standing: Sequence[Sequence[int]]) -> None:
        """One forward: what stands before each span is checked, then its tokens are noted."""
        for span, tokens in zip(batch.spans, standing, strict=True):
            self.check(span.slot, tokens[: span.start])
        self.wrote(batch.tokens, batch.spans)

    def check(self, slot: int, standing: Sequence[int]) -> None:
        """The rows of ``slot`` from its beginning against the tokens that stand there."""
        rows = self._rows.get(slot, {})
        for row, token in enumerate(standing):
            if rows.get(row) != token:
                self._report(slot, row, rows.get(row), token)
                return

    def _report(self, slot: int, row: int, found: int | None, token: int) -> None:
        if found is None:
            what = "was never written"
        elif found < 0:
            what = f"holds a guess (token {~found})"
        else:
            what = f"was written by token {found}"
        fault = f"stale row in the {self._whose} cache: row {row} of slot {slot} {what}, token {token} stands there"
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)
            log.error("%s", fault)


def watch(cache: Any, whose: str) -> RowLedger:
    """A ledger that also notes what ``cache`` moves and copies by itself."""
    ledger = RowLedger(whose)
    move, copy = cache.move, cache.copy

    def moving(slot: int, start: int, kept: Sequence[int]) -> None:
        move(slot, start, kept)
        ledger.moved(slot, start, kept)

    def copying(source: int, slot: int, count: int) -> None:
        copy(source, slot, count)
        ledger.copied(source, slot, count)

    cache.move, cache.copy = moving, copying
    return ledger


def cache_faults(engine: Engine) -> tuple[str, ...]:
    """Stale rows that were found in the caches of target and draft, where ``check_cache`` looks for them."""
    ledgers = (engine._rows, getattr(engine._drafting.proposer, "rows", None))
    return tuple(fault for ledger in ledgers if ledger is not None for fault in ledger.faults)
