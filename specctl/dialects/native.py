"""The native keys that a setting carries in `engine_options`: of other engines, or beside keys that say the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specctl.dialects import sglang, trtllm, vllm
from specctl.dialects.foreign import title
from specctl.dialects.reading import Finding, shown
from specctl.spec import SpecDecodeConfig


def option_losses(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    """What is lost of `engine_options` when the setting is written for `engine`, and what they overrule there."""
    return _foreign(spec, engine) + _overruled(spec, engine, release)


def _foreign(spec: SpecDecodeConfig, engine: str) -> list[Finding]:
    return [
        Finding(
            "SPC403",
            f"{key} {shown(value)} is {title(owner)}'s own and is left out",
            help=f"look for its counterpart among {title(engine)}'s options",
        )
        for owner, options in spec.engine_options.items()
        if owner != engine
        for key, value in options.items()
    ]


def _overruled(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    options = spec.engine_options.get(engine)
    if not options:
        return []
    plain = _keys(replace(spec, engine_options={}), engine, release)
    return [
        Finding(
            "SPC404",
            f"engine_options of {title(engine)} say {key} {shown(value)}, the setting itself {shown(plain[key])}; "
            "the native key wins",
            ("engine_options", engine, key),
            help="keep one of the two",
            at_key=True,
        )
        for key, value in options.items()
        if plain.get(key, value) != value
    ]


def _keys(spec: SpecDecodeConfig, engine: str, release: str) -> dict[str, Any]:
    if engine == "sglang":
        return sglang.values(spec)
    if engine == "vllm":
        return vllm.write(spec, release)
    found: dict[str, Any] = trtllm.write(spec, release)["speculative_config"]
    return found
