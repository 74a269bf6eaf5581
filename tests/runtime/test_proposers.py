"""The table of proposers and the table of methods tell the same story."""

from __future__ import annotations

from specctl.runtime.proposers import PROPOSERS
from specctl.spec.methods import METHODS


def test_the_methods_that_say_they_run_here_do() -> None:
    assert {name for name, method in METHODS.items() if method.runs_in_specctl} == set(PROPOSERS)
