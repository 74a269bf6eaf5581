"""From one spelling to another: what the writers cannot say, and reading a setting as another engine would get it."""

from __future__ import annotations

from specctl.dialects.dialect import DIALECTS
from specctl.dialects.reading import Reading


def reread(reading: Reading, engine: str, release: str) -> Reading:
    """The reading of the same setting after it was written in `engine`'s spelling; diagnostics keep the original's places."""
    raise NotImplementedError(engine, release, reading, DIALECTS)
