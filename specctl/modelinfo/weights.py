"""Names and shapes of a checkpoint's tensors, out of safetensors headers; no weight is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

MAX_HEADER = 64 << 20
Shapes = Mapping[str, tuple[int, ...]]


@lru_cache(maxsize=64)
def tensor_names(folder: Path) -> frozenset[str] | None:
    """All tensor names of a checkpoint; None where it has no readable safetensors file, and for a GGUF file, whose
    names are llama.cpp's own."""
    index = folder / "model.safetensors.index.json"
    try:
        listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return frozenset(map(str, listed))
    except (OSError, ValueError, KeyError, TypeError):
        found = shapes(folder)
    return frozenset(found) if found is not None else None


@lru_cache(maxsize=64)
def shapes(folder: Path) -> Shapes | None:
    """All tensor shapes by name; None where there is no safetensors file or a header is damaged."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return None
    found: dict[str, tuple[int, ...]] = {}
    for file in files:
        header = _header(file)
        if header is None:
            return None
        found |= header
    return found


def _header(file: Path) -> dict[str, tuple[int, ...]] | None:
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > MAX_HEADER:
                return None
            entries = json.loads(stream.read(length))
        return {name: tuple(entry["shape"]) for name, entry in entries.items() if name != "__metadata__"}
    except (OSError, ValueError, struct.error, KeyError, TypeError):
        return None


@lru_cache(maxsize=64)
def tensor_bytes(folder: Path) -> int | None:
    """Bytes of all tensors of a checkpoint, out of the offsets in its headers; None where there are none to read."""
    total = 0
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    for file in files:
        size = _data_size(file)
        if size is None:
            return None
        total += size
    return total if files else None


def _data_size(file: Path) -> int | None:
    """Where the last tensor of a file ends, in bytes behind the header."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > MAX_HEADER:
                return None
            entries = json.loads(stream.read(length))
        return max(
            (int(each["data_offsets"][1]) for name, each in entries.items() if name != "__metadata__"), default=0
        )
    except (OSError, ValueError, struct.error, KeyError, TypeError, IndexError, AttributeError):
        return None
