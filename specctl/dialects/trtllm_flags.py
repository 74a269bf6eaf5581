"""Flags of `trtllm-serve` beside the file of `--config`: who wins, by release."""

from __future__ import annotations

from typing import Any

from specctl.dialects.reading import Reading
from specctl.dialects.trtllm_line import is_new

_CACHE_FLAGS = {
    "free_gpu_memory_fraction": "free_gpu_memory_fraction",
    "kv_cache_free_gpu_memory_fraction": "free_gpu_memory_fraction",
    "kv_cache_dtype": "dtype",
    "enable_block_reuse": "enable_block_reuse",
}


def merge_flags(reading: Reading) -> None:
    """Flags beside the file: 1.2.1 lets the file win, 1.4 the flag that was typed."""
    for key, value in reading.notes["flags"].items():
        in_file = key in reading.notes.get("file_keys", set())
        if is_new(reading.release) or not in_file:
            if in_file and reading.around.args[key] != value:
                reading.change(
                    "SPC323", key, reading.around.args[key], value, "a typed flag wins over the file in this release"
                )
            reading.around.args[key] = value
        elif reading.around.args[key] != value:
            reading.change(
                "SPC323", key, value, reading.around.args[key], "the file wins over a typed flag in this release"
            )
    _merge_cache(reading)


def _merge_cache(reading: Reading) -> None:
    """Flags of the cache go into `kv_cache_config`, with the same precedence."""
    cache = reading.around.args.get("kv_cache_config")
    for typed, key in _CACHE_FLAGS.items():
        value = reading.notes["flags"].get(typed)
        if value is None or not isinstance(cache, dict) or cache.get(key) in (None, value, _number(value)):
            continue
        reading.arg_routes[key] = ("kv_cache_config", key)
        winner = "a typed flag wins over the file" if is_new(reading.release) else "the file wins over a typed flag"
        old, new = (cache[key], value) if is_new(reading.release) else (value, cache[key])
        reading.change("SPC323", key, old, new, f"{winner} in this release")


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
