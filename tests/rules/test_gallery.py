"""The gallery in the docs is what the code says, and every piece of it says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.rules.gallery import CASES, Case, page, report_of

GALLERY = Path(__file__).parents[2] / "docs" / "gallery.md"


def test_the_gallery_is_fresh() -> None:
    assert GALLERY.read_text(encoding="utf-8") == page(), "run: python -m specctl.rules.gallery"


def test_there_are_ten() -> None:
    assert len(CASES) == 10


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_each_piece_has_a_cure(case: Case) -> None:
    first = report_of(case).diagnostics[0]
    assert first.severity in ("error", "warning")
    assert first.help
    assert first.span is not None
