"""What is broken about a checkpoint's weight files, from their headers and sizes alone."""

from __future__ import annotations

import json
import struct
from functools import lru_cache
from pathlib import Path

from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.weights import MAX_HEADER

# Sizes that every model has which states them; 0 layers are none.
_SIZES = ("hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads")
_POINTER = b"version https://git-lfs"


@lru_cache(maxsize=64)
def damage_of(path: Path) -> str | None:
    """What is wrong with the weights of a folder or GGUF file; None where nothing is, or there are none."""
    if path.is_file():
        return _gguf(path)
    missing = _missing_shards(path)
    if missing:
        return missing
    for file in sorted(path.glob("*.safetensors")):
        fault = _safetensors(file)
        if fault:
            return fault
    return None


def config_fault(facts: ModelFacts) -> str | None:
    """What in a config.json cannot be meant; None where nothing is odd."""
    for key in _SIZES:
        value = facts.text.get(key)
        whole = type(value) is int or (isinstance(value, float) and value.is_integer())
        if value is not None and not isinstance(value, list) and (not whole or value < 1):
            return f"config.json: {key} is {value!r}; wanted a whole number of at least 1"
    kind = facts.config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        return f"config.json: model_type is {kind!r}; wanted a name"
    return None


def _gguf(path: Path) -> str | None:
    from specctl.modelinfo.gguf import BadHeader, read_header

    try:
        lacking = read_header(path).missing
    except (BadHeader, OSError) as error:
        return f"{path} is no whole GGUF file: {error}"
    return f"{path} is cut off: its header says {lacking:,} bytes more than the file has" if lacking else None


def _missing_shards(folder: Path) -> str | None:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return None
    try:
        listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted({str(each) for each in listed.values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"{index} cannot be read: {type(error).__name__}"
    if not any(folder.glob("*.safetensors")):
        return None  # the index alone, as kept for looking things up
    gone = [name for name in names if not (folder / name).is_file()]
    return f"{index} names {gone[0]}, which is not there" if gone else None


def _safetensors(file: Path) -> str | None:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(len(_POINTER))
            if start == _POINTER:
                return f"{file} is a pointer of Git LFS, not the weights"
            stream.seek(0)
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > min(size, MAX_HEADER):
                return f"{file} has no safetensors header: it would be {length:,} bytes long, the file has {size:,}"
            entries = json.loads(stream.read(length))
        ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
        lacking = 8 + length + max(ends, default=0) - size
    except struct.error:
        return f"{file} is cut off: it has {size} bytes, a safetensors header needs more"
    except OSError as error:
        return f"{file} cannot be read: {error.strerror or error}"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return f"{file} has no readable safetensors header"
    return f"{file} is cut off: its header says {lacking:,} bytes more than the file has" if lacking > 0 else None
