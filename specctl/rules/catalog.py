"""The rules of this folder, found by walking it: file name = code and name, docstring = page, `check` = judgement."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from specctl.diagnostics import ERROR
from specctl.dialects.reading import Finding, Reading

Check = Callable[[Reading], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One rule. `engines`: whose settings it looks at (empty: all). `needs`: `target` or `draft`, whose config.json
    it reads.
    """

    code: str
    name: str
    severity: str
    page: str
    engines: tuple[str, ...]
    needs: tuple[str, ...]
    check: Check | None
    applies: Callable[[Reading], bool] | None

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.split("\n", 1)[0].strip()


def _rule(module: ModuleType) -> Rule:
    stem = module.__name__.rsplit(".", 1)[1]
    code, name = stem.split("_", 1)
    return Rule(
        code=code.upper(),
        name=name.replace("_", "-"),
        severity=getattr(module, "SEVERITY", ERROR),
        page=(module.__doc__ or "").strip(),
        engines=getattr(module, "ENGINES", ()),
        needs=getattr(module, "NEEDS", ()),
        check=getattr(module, "check", None),
        applies=getattr(module, "applies", None),
    )


@cache
def rules() -> dict[str, Rule]:
    """All rules by code, in order."""
    import specctl.rules as room

    found = []
    for entry in pkgutil.iter_modules(room.__path__):
        if entry.name.startswith("spc"):
            found.append(_rule(importlib.import_module(f"specctl.rules.{entry.name}")))
    return {rule.code: rule for rule in sorted(found, key=lambda each: each.code)}
