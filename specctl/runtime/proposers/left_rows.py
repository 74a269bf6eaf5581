"""What a draft's own cache still holds of slots whose sequences have left, so that others can begin with it."""

from __future__ import annotations

from typing import Any

from specctl.runtime.integrity import RowLedger


class LeftRows:
    """``cache``: with ``copy`` and ``prefixes_can_be_shared``, as the target's."""

    def __init__(self, cache: Any, rows: RowLedger | None = None) -> None:
        self._cache = cache
        self._rows = rows
        self._left: dict[int, int] = {}

    def leave(self, slot: int, rows: int) -> None:
        """A sequence left ``slot``, whose first ``rows`` rows are right."""
        self._left[slot] = rows

    def carry(self, source: int, slot: int, count: int, running: int | None) -> int:
        """Copy up to ``count`` rows of ``source`` into ``slot``; how many there are.

        ``running``: the right rows of a source that is in use.
        """
        held = self._left.get(source, 0) if running is None else running
        rows = max(0, min(count, held)) if self._cache.prefixes_can_be_shared else 0
        if source != slot:
            self._cache.copy(source, slot, rows)
            if self._rows:
                self._rows.copied(source, slot, rows)
        self._left[slot] = rows
        return rows

    def begin(self, slot: int, carried: bool) -> int:
        """A sequence starts in ``slot``: rows that are right for it, none unless they were carried there for it."""
        rows = self._left.pop(slot, 0)
        return rows if carried else 0
