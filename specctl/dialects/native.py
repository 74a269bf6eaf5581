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
    return _foreign(spec, engine) + _gone(spec, engine, release) + _overruled(spec, engine, release)


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


def _gone(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    """The engine's own keys that this release does not know."""
    if engine != "trtllm":
        return []
    kept = trtllm.native_options(spec, release)
    name = trtllm.native_type(spec, release)
    return [
        Finding(
            "SPC403",
            f"{name} of TensorRT-LLM {release} has no key {key!r}; {shown(value)} is left out",
            help=_successor(spec, key, value),
        )
        for key, value in spec.engine_options.get(engine, {}).items()
        if key not in kept
    ]


def _successor(spec: SpecDecodeConfig, key: str, value: Any) -> str:
    """What takes the place of a key of another release; a gate's threshold is a length in one, a rate in the other."""
    length = spec.num_speculative_tokens
    if key in ("acceptance_length_threshold", "acceptance_rate_threshold") and length and isinstance(value, float):
        other = round(value / length if key == "acceptance_length_threshold" else value * length, 3)
        return f"write about {other:g} as {trtllm.MOVED[key]}, and measure it"
    return f"write {trtllm.MOVED[key]}" if key in trtllm.MOVED else "nothing takes its place"


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
