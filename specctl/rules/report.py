"""`Report`: what `check` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specctl.diagnostics import ERROR, WARNING, Diagnostic, Result, Skipped
from specctl.errors import EXIT_FINDINGS, EXIT_MISSING, EXIT_OK
from specctl.spec import SpecDecodeConfig

MISSING_CODES = frozenset({"SPC201"})


@dataclass(frozen=True, repr=False)
class Report:
    """The verdict on one setting; printed, it is the text of `specctl validate-config`.

    `config` is the canonical spec as a dataclass (None where nothing usable was read, or speculation is off);
    `result` holds everything that the output formats print."""

    result: Result
    config: SpecDecodeConfig | None = None

    def __str__(self) -> str:
        from specctl.diagnostics.as_text import render

        return render([self.result])

    def __repr__(self) -> str:
        errors, warnings = self.result.count(ERROR), self.result.count(WARNING)
        what = f"{self.engine} {self.release}".strip()
        return f"<Report: {what} {self.verdict}; {errors} errors, {warnings} warnings>"

    @property
    def verdict(self) -> str:
        """`accepts`, `refuses` or `fails-at-start`: what the engine does."""
        return self.result.verdict

    @property
    def valid(self) -> bool:
        """Whether no diagnostic is an error."""
        return self.result.count(ERROR) == 0

    @property
    def spec(self) -> Mapping[str, Any] | None:
        """The canonical spec as JSON types."""
        return self.result.spec

    @property
    def effective(self) -> Mapping[str, Any]:
        """Every value the engine ends up with, under its own key names."""
        return self.result.effective

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Errors first, then warnings and advice."""
        return self.result.diagnostics

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Rules that could not look, and what they lacked."""
        return self.result.skipped

    @property
    def source(self) -> str:
        """The file name, or `<argv>`."""
        return self.result.source

    @property
    def engine(self) -> str:
        """Whose verdict this is."""
        return self.result.engine

    @property
    def release(self) -> str:
        """The release whose rules were applied."""
        return self.result.release

    @property
    def only_missing(self) -> bool:
        """Whether there are errors, and all of them say that a file or model is missing."""
        wrong = [each for each in self.diagnostics if each.severity == ERROR]
        return bool(wrong) and all(each.code in MISSING_CODES for each in wrong)

    def exit_code(self, *, strict: bool = False) -> int:
        """The exit status of a command that ends with this report."""
        if any(each.code in MISSING_CODES and each.severity == ERROR for each in self.diagnostics):
            return EXIT_MISSING
        bad = self.result.count(ERROR) or (strict and self.result.count(WARNING))
        return EXIT_FINDINGS if bad else EXIT_OK
