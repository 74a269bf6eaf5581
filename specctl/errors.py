"""The exceptions of specctl: one base class, one subclass for each exit status.

```
SpecctlError          1   the setting, the content or the outcome is wrong
├─ UsageError         2   the command or the call is wrong (also: spellings of two engines mixed)
└─ MissingError       3   a file, model or port that is needed is not there, or cannot be read
   └─ DamagedError    3   it is there, but its content is damaged
```
The command line prints `message` and `help` without a traceback and ends with `exit_code`.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_MISSING = 3


class SpecctlError(Exception):
    """Something the user can put right.

    `message` says what was found and what was wanted; `help`, where present, is the cure in one sentence.
    """

    default_exit_code = EXIT_FINDINGS

    def __init__(self, message: str, *, help: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.exit_code = self.default_exit_code if exit_code is None else exit_code

    def __str__(self) -> str:
        return self.message if self.help is None else f"{self.message}\n  help: {self.help}"


class UsageError(SpecctlError):
    """Wrong usage: unknown option, options that exclude each other, settings of two engines in one command."""

    default_exit_code = EXIT_USAGE


class MissingError(SpecctlError):
    """A file, folder, model or port is missing or unreadable; the message names where it was looked for."""

    default_exit_code = EXIT_MISSING


class DamagedError(MissingError):
    """A file is there, but its content cannot be what its name says (truncated weights, broken header)."""
