"""The rules of this folder: file name = code and name, docstring = page, `check` = judgement.

`index.py` holds what must be known of every rule before it is needed (made by `python -m
specctl.rules.index_writer`); a rule's own file is imported when a setting of its engine is judged, or its page is
asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from types import ModuleType

from specctl.dialects.reading import Finding, Reading
from specctl.rules.index import INDEX

Check = Callable[[Reading], Iterator[Finding]]


class Rule:
    """One rule. `engines`: whose settings it looks at (empty: all). `needs`: `target` or `draft`, whose config.json
    it reads, or `platform`, a GPU that is named.

    `judges`: whether its file has a `check`; the others hold the page of a finding that reading or conversion makes.
    """

    def __init__(
        self, stem: str, severity: str, engines: tuple[str, ...], needs: tuple[str, ...], judges: bool
    ) -> None:
        self.stem, self.severity, self.engines, self.needs, self.judges = stem, severity, engines, needs, judges
        code, name = stem.split("_", 1)
        self.code, self.name = code.upper(), name.replace("_", "-")

    @cached_property
    def module(self) -> ModuleType:
        """The rule's own file."""
        return importlib.import_module(f"specctl.rules.{self.stem}")

    @property
    def page(self) -> str:
        """The page, examples included."""
        return (self.module.__doc__ or "").strip()

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.split("\n", 1)[0].strip()

    def applies(self, reading: Reading) -> bool:
        """Whether the rule has anything to look at."""
        asked: Callable[[Reading], bool] | None = getattr(self.module, "applies", None)
        return asked is None or asked(reading)

    def check(self, reading: Reading) -> Iterator[Finding]:
        """What the rule has to say about a reading."""
        checks: Check = self.module.check
        return checks(reading)


@cache
def rules() -> dict[str, Rule]:
    """All rules by code, in order."""
    return {rule.code: rule for rule in (Rule(*row) for row in INDEX)}
