"""Settings that only name a draft: what its folder holds says which method it is for."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specctl.rules.report import Report
    from specctl.spec import SpecDecodeConfig

DEFAULT_K = 4


@cache
def _say(note: str) -> None:
    """Once, however often a command reads its settings."""
    print(note, file=sys.stderr)


def method_held(name: str | None) -> str | None:
    """The method that the draft `name` is for by its content; None for an ordinary model, or where it is not there."""
    from specctl.modelinfo.describe import method_of
    from specctl.modelinfo.facts import ModelFacts
    from specctl.modelinfo.read import read_facts
    from specctl.resources import find_model

    if not name or find_model(name) is None:
        return None
    facts = read_facts(name)
    return method_of(facts) if isinstance(facts, ModelFacts) else None


def folder_report(name: str, options: dict[str, Any]) -> Report | None:
    """The report on the setting that a draft's name alone makes; None where it names none."""
    from specctl.rules.checker import check

    method = method_held(name)
    if method is None:
        return None
    _say(f"note: {name} is a draft for method {method}; it drafts {DEFAULT_K} tokens a step")
    setting = {"specctl": 1, "method": method, "model": name, "num_speculative_tokens": DEFAULT_K}
    return check(setting, target=options.get("target"), platform=options.get("platform"))


def as_held(spec: SpecDecodeConfig, guessed: bool) -> SpecDecodeConfig:
    """The setting with the method that its draft's folder holds, where the setting names none (``guessed``: its engine
    goes by the folder's name) or an ordinary draft model.
    """
    from specctl.resources import find_model
    from specctl.spec.methods import METHODS, DraftModel

    if spec.model is None or find_model(spec.model) is None or not (guessed or spec.method == DraftModel()):
        return spec
    held = method_held(spec.model) or DraftModel.name
    if held == spec.method.name:
        return spec
    what = "an ordinary model" if held == DraftModel.name else f"a draft for method {held}"
    _say(f"note: {spec.model} is {what}, told by its content; it runs as that")
    return replace(spec, method=METHODS[held]())
