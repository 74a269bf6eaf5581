"""Every method at once: which of them can be measured on a target, and with which draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specctl.bench.candidates import from_methods, has_draft, runnable_methods
from specctl.errors import UsageError
from specctl.spec.config import SpecDecodeConfig


def choose_all(
    methods: str | None, ks: Sequence[int], drafts: Mapping[str, str], target: str
) -> tuple[list[SpecDecodeConfig], list[str]]:
    """A spec for each k of each method whose draft is at hand, and a note for each method that is left out.

    Raises `UsageError` beside a list of methods.
    """
    if methods is not None:
        raise UsageError("--methods and --all-methods exclude each other", help="leave one of them out")
    able = [name for name in runnable_methods() if has_draft(name, drafts, target)]
    missing = [name for name in runnable_methods() if name not in able]
    notes = [f"{name} is left out: no draft for {target} at hand; --draft {name}=MODEL names one" for name in missing]
    return from_methods(able, ks, drafts, target), notes
