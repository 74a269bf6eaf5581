"""docs/planning.md is what the commands print, and the plan meets published runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load() -> Any:
    found = importlib.util.spec_from_file_location("planning_page", DOCS / "planning_page.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["planning_page"] = module
    found.loader.exec_module(module)
    return module


PAGE = load()


def test_the_page_is_fresh() -> None:
    text = (DOCS / "planning.md").read_text("utf-8")
    assert PAGE.fresh(text) == text, "run: python docs/planning_page.py"
    assert len(PAGE.MARK.findall(text)) == 8


@pytest.mark.parametrize("published", PAGE.RUNS, ids=lambda run: f"{run.target}-{run.level}-{run.k}-{run.length}")
def test_planned_speed_ups_meet_published_ones(published: Any) -> None:
    assert published.planned == pytest.approx(published.speedup, rel=0.13)
