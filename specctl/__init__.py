"""specctl reads the speculative-decoding settings of vLLM, SGLang and TensorRT-LLM and says what is wrong with them.

The public names are `check`, `load`, `convert` and `Report`; they are imported when they are first used. Belongs
here: nothing but these names. Who may enter: everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specctl.rules.checker import check
    from specctl.rules.convert import convert, load
    from specctl.rules.report import Report

__all__ = ["Report", "check", "convert", "load"]

_HOMES = {
    "Report": "specctl.rules.report",
    "check": "specctl.rules.checker",
    "convert": "specctl.rules.convert",
    "load": "specctl.rules.convert",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'specctl' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
