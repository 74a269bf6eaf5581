"""specctl reads the speculative-decoding settings of vLLM, SGLang and TensorRT-LLM and says what is wrong with them.

The public names are `check`, `load` and `convert`, what they return (`Report` with its `Diagnostic`s,
`SpecDecodeConfig`, `Converted`) and what they raise (`SpecctlError` and its kinds `UsageError`, `MissingError`); they
are imported when they are first used. Belongs here: nothing but these names. Who may enter: everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specctl.diagnostics import Diagnostic
    from specctl.errors import MissingError, SpecctlError, UsageError
    from specctl.rules.checker import check
    from specctl.rules.convert import Converted, convert, load
    from specctl.rules.report import Report
    from specctl.spec import SpecDecodeConfig

__all__ = [
    "Converted",
    "Diagnostic",
    "MissingError",
    "Report",
    "SpecDecodeConfig",
    "SpecctlError",
    "UsageError",
    "check",
    "convert",
    "load",
]

_HOMES = {
    "Converted": "specctl.rules.convert",
    "Diagnostic": "specctl.diagnostics",
    "MissingError": "specctl.errors",
    "Report": "specctl.rules.report",
    "SpecDecodeConfig": "specctl.spec",
    "SpecctlError": "specctl.errors",
    "UsageError": "specctl.errors",
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
