"""The canonical setting: which method drafts, how many tokens, from which model, and how drafts are accepted.

Belongs here: the frozen dataclasses that every other room passes around, and the names of methods and releases.
Does not belong here: how an engine spells anything (dialects), whether it is wise (rules), how it runs (runtime).
Who may enter: every room; this one imports the standard library only.
"""

from specctl.spec.config import (
    Acceptance,
    DraftOptions,
    Origin,
    ScheduleStep,
    SpecDecodeConfig,
    Tree,
    filled,
)
from specctl.spec.methods import METHODS, Method
from specctl.spec.release import KNOWN_RELEASES, Release

__all__ = [
    "KNOWN_RELEASES",
    "METHODS",
    "Acceptance",
    "DraftOptions",
    "Method",
    "Origin",
    "Release",
    "ScheduleStep",
    "SpecDecodeConfig",
    "Tree",
    "filled",
]
