"""The table of dialects, and how a text is told to be written in one of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specctl.dialects.foreign import title
from specctl.dialects.reading import Reading, Surroundings
from specctl.errors import UsageError
from specctl.source import Document
from specctl.source.command import entry_of
from specctl.source.flags import owner

Reader = Callable[[Document, Surroundings, str, str], Reading]


@dataclass(frozen=True)
class Dialect:
    """One spelling: where its reader and writer live; they are imported when they are used."""

    name: str
    reader: str
    writer: str

    def read(self, document: Document, around: Surroundings, release: str, form: str) -> Reading:
        """Read a document as this dialect."""
        reader: Reader = importlib.import_module(self.reader).read
        return reader(document, around, release, form)

    def write(self, spec: Any, release: str) -> Any:
        """The native form of a spec: an object (vLLM, specctl), a list of tokens (SGLang), a mapping (TensorRT-LLM)."""
        return importlib.import_module(self.writer).write(spec, release)


DIALECTS: dict[str, Dialect] = {
    "vllm": Dialect("vllm", "specctl.dialects.vllm_read", "specctl.dialects.vllm"),
    "sglang": Dialect("sglang", "specctl.dialects.sglang_read", "specctl.dialects.sglang"),
    "trtllm": Dialect("trtllm", "specctl.dialects.trtllm_read", "specctl.dialects.trtllm"),
    "specctl": Dialect("specctl", "specctl.dialects.own_read", "specctl.dialects.own"),
}

_VLLM_SHORT = frozenset({"spec_method", "spec_model", "spec_tokens"})


def told_apart(document: Document, form: str) -> tuple[str | None, str]:
    """The dialect a document is written in, or None, and what was seen in it. Two dialects in one text raise
    `UsageError`.
    """
    value = document.value
    if not document.readable:
        return None, "it could not be read"
    if form == "argv":
        return _of_argv(value)
    if isinstance(value, dict):
        return _of_mapping(value, document.source)
    if isinstance(value, (list, str)) and form == "json":
        return "vllm", "a JSON value"
    return (
        None,
        "it is empty" if value is None else f"its root is {'a list' if isinstance(value, list) else 'one word'}",
    )


def _of_argv(tokens: list[str]) -> tuple[str | None, str]:
    entry = entry_of(tokens)[0]
    if entry:
        return entry, "a command line"
    owners = {found[0] for found in map(owner, tokens) if found}
    if len(owners) == 1:
        return owners.pop(), "its flags"
    return ("sglang" if "--model-path" in tokens else None), "no flag of speculation"


def _bare_vllm(value: dict[Any, Any], names: dict[str, Any]) -> bool:
    """Whether a mapping is vLLM's object without its flag: a count, or a method beside another of its keys."""
    method = value.get("method")
    return "num_speculative_tokens" in names or (isinstance(method, str) and (len(names) == 1 or "model" in names))


def _of_mapping(value: dict[Any, Any], source: str) -> tuple[str | None, str]:
    names = {str(key).replace("-", "_"): key for key in value}
    found: dict[str, str] = {}
    if "specctl" in names:
        found["specctl"] = "specctl"
    config = value.get(names.get("speculative_config", ""))
    if "speculative_config" in names:
        listed = config if isinstance(config, list) else [config]
        marked = any(
            isinstance(part, dict) and any(str(key).replace("-", "_") == "decoding_type" for key in part)
            for part in listed
        )
        found["trtllm" if marked else "vllm"] = str(names["speculative_config"])
    inside = [key for key, part in value.items() if isinstance(part, dict) and "decoding_type" in part]
    if "decoding_type" in names or (inside and "speculative_config" not in names):
        found["trtllm"] = "decoding_type" if "decoding_type" in names else str(inside[0])
    for name, key in names.items():
        if name in _VLLM_SHORT or name.startswith("speculative_config."):
            found.setdefault("vllm", str(key))
        elif name.startswith("speculative_") and name != "speculative_config" and key not in inside:
            found["sglang"] = str(key)
    if not found and _bare_vllm(value, names):
        found["vllm"] = "num_speculative_tokens" if "num_speculative_tokens" in names else "method"
    if len(found) > 1:
        seen = " and ".join(f"{key} ({title(name)})" for name, key in sorted(found.items()))
        raise UsageError(
            f"{source} mixes two spellings: {seen}", help="keep one of them, or name the one to read with --dialect"
        )
    if found:
        name, key = next(iter(found.items()))
        return name, key
    return None, "none of its keys is one: " + (", ".join(map(str, list(value)[:6])) or "it has no keys")
