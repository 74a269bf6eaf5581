"""What we say and how it prints: diagnostics, their places, and the output formats.

Belongs here: the dataclasses of a finding and one `as_*` module for each format.
Does not belong here: anything about speculation, engines or file formats that are read.
Who may enter: every room; this one imports nothing of specctl.
"""

from specctl.diagnostics.model import (
    ADVICE,
    ERROR,
    WARNING,
    Diagnostic,
    Fix,
    Result,
    Route,
    Skipped,
    Span,
    Totals,
)

__all__ = ["ADVICE", "ERROR", "WARNING", "Diagnostic", "Fix", "Result", "Route", "Skipped", "Span", "Totals"]
