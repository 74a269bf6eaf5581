"""Writes `index.py` and docs/rules.md out of the rule files; run it after a rule was added.

python -m specctl.rules.index_writer
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

HEAD = '"""Made from the rule files by index_writer.py: stem, severity, engines, needs, judges."""\n\n'
Row = tuple[str, str, tuple[str, ...], tuple[str, ...], bool]


def rows() -> list[Row]:
    """One row for each rule file, by walking the folder."""
    import specctl.rules as room

    found: list[Row] = []
    for entry in pkgutil.iter_modules(room.__path__):
        if entry.name.startswith("spc"):
            module = importlib.import_module(f"specctl.rules.{entry.name}")
            engines, needs = getattr(module, "ENGINES", ()), getattr(module, "NEEDS", ())
            found.append((entry.name, getattr(module, "SEVERITY", "error"), engines, needs, hasattr(module, "check")))
    return sorted(found)


def text() -> str:
    """The source of `index.py`."""
    lines = [f"    {row!r},".replace("'", '"') for row in rows()]
    return (
        HEAD
        + "INDEX: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], bool], ...] = (\n"
        + "\n".join(lines)
        + "\n)\n"
    )


if __name__ == "__main__":
    home = Path(__file__).parent
    (home / "index.py").write_text(text(), encoding="utf-8")
    from specctl.rules.pages import table

    (home.parents[1] / "docs" / "rules.md").write_text(table(), encoding="utf-8")
