"""What a parser of flags stops at, in words that are the same for every engine."""

from __future__ import annotations

import re

from specctl.diagnostics import Route
from specctl.dialects.reading import Finding, shown
from specctl.source.flags import Misuse


def misused(wrong: Misuse, route: Route, *, typed: str, ambiguous: str, stray: str) -> Finding:
    """The finding for a flag that is ambiguous, lacks a value or has one too many, or for a word that no flag takes.

    `typed`: the flag as it stands; `ambiguous` and `stray`: the engine's own cure for these two."""
    if wrong.kind == "ambiguous":
        return Finding("SPC008", f"{typed} is short for several flags: {', '.join(wrong.names[:6])}", route, ambiguous)
    if wrong.kind == "value-missing":
        return Finding("SPC008", f"{typed} needs a value", route, f"write {typed} VALUE")
    if wrong.kind == "value-unwanted":
        return Finding("SPC008", f"{typed} takes no value", route, f"write {typed} alone")
    if not wrong.token.strip("\\ \t\n"):
        stray = "a backslash continues a line only as its very last character; delete what follows it"
    elif re.match(r"--[\w.-]+\s+\S", wrong.token):
        stray = "flag and value stand in one word; make them two, or put = between them"
    return Finding("SPC008", f"{shown(wrong.token)} is left over: no flag takes it", route, stray)
