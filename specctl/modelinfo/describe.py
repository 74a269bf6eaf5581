"""What a checkpoint is, as a flat mapping that can be printed."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path
from typing import Any

from specctl.modelinfo.damage import config_fault, damage_of
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.families import mtp_family
from specctl.modelinfo.mtp_layouts import COUNT_KEYS, count_layers, fault_of
from specctl.modelinfo.recognise import recognise
from specctl.modelinfo.tokens import token_table
from specctl.modelinfo.weights import shapes, tensor_bytes, tensor_names

# Drafting that needs no weights, or those of any smaller model with the same tokenizer.
ANY_TARGET = ("ngram", "suffix", "draft_model")


def method_of(facts: ModelFacts) -> str | None:
    """The method that the checkpoint is a draft for by its content; None for an ordinary model."""
    names = tensor_names(facts.path) or frozenset()
    found = recognise(facts.config, names)
    # A target with prediction layers of its own is a target first; without a first layer it is those layers alone.
    whole = not names or any(".layers.0.input_layernorm" in name for name in names)
    return None if found == "mtp" and whole and not is_assistant(facts) else found


def is_assistant(facts: ModelFacts) -> bool:
    """Whether the checkpoint is a Gemma-4 assistant: prediction layers in a repository of their own."""
    return "assistant" in facts.model_type


def has_template(folder: Path) -> bool | None:
    """Whether a chat template lies in the folder; None where it cannot be told (a GGUF file)."""
    import json

    if not folder.is_dir():
        return None
    if (folder / "chat_template.jinja").is_file() or (folder / "chat_template.json").is_file():
        return True
    try:
        return bool(json.loads((folder / "tokenizer_config.json").read_text("utf-8")).get("chat_template"))
    except (OSError, ValueError, AttributeError):
        return False


def describe(facts: ModelFacts) -> dict[str, Any]:
    """Facts of one checkpoint; None where its files do not say. Sizes in bytes and elements."""
    method = method_of(facts)
    table = token_table(facts.path)
    held = shapes(facts.path) if facts.path.is_dir() else None
    return {
        "name": facts.name,
        "path": str(facts.path),
        "kind": "target" if method is None else "draft",
        "method": method,
        "methods": list(ANY_TARGET) + own_methods(facts) if method is None else [method],
        "architecture": facts.architecture or None,
        "model_type": facts.model_type or None,
        "layers": facts.num_layers,
        "hidden_size": facts.hidden_size,
        "heads": facts.num_heads,
        "kv_heads": facts.number("num_key_value_heads"),
        "vocab_size": facts.vocab_size,
        "draft_vocab_size": facts.number("draft_vocab_size", "truncated_vocab_size"),
        "context": facts.max_positions,
        "dtype": facts.dtype,
        "quantization": facts.quant_method,
        "mtp_layers": _mtp(facts),
        "verifier": facts.verifier,
        "parameters": sum(prod(shape) for shape in held.values()) if held else None,
        "weights_bytes": facts.path.stat().st_size if facts.path.is_file() else tensor_bytes(facts.path),
        "tokens": len(table.ordinary) + len(table.added) if table else None,
        "chat_template": has_template(facts.path),
        "damage": damage_of(facts.path) or config_fault(facts),
    }


def own_methods(facts: ModelFacts) -> list[str]:
    """Methods that the checkpoint brings the draft for itself."""
    layers = _mtp(facts)
    return ["mtp"] if layers and layers["found"] != 0 and not layers["fault"] else []


def _mtp(facts: ModelFacts) -> dict[str, int | str | None] | None:
    """Prediction layers as the config declares them and as the tensors' names show them, and what is wrong with these;
    None where there are none. ``declared`` None: the config does not say.
    """
    if is_assistant(facts):  # it is such layers as a whole, and runs on the target's keys and values
        return None
    names, known = tensor_names(facts.path), mtp_family(facts) is not None
    declared = facts.number(*COUNT_KEYS)
    if names is None:
        return {"declared": declared, "found": None, "fault": None} if known else None
    plain = {name.replace("language_model.", "") for name in names}
    found = count_layers(plain, facts.num_layers or 0) or _layers_of_unknown_layouts(names)
    if not (known or found or declared):
        return None
    return {"declared": declared, "found": found, "fault": fault_of(plain, facts.num_layers or 0)}


def _layers_of_unknown_layouts(names: frozenset[str]) -> int:
    """Different layer numbers among tensors of prediction layers that do not run here."""
    marks = r"(?:(?:^|\.)mtp(?:_layers|\.layers|_block)\.(\d+)\.)|(?:layers\.(\d+)\.(?:eh_proj|enorm)\.)"
    return len({match.group(1) or match.group(2) for name in names if (match := re.search(marks, name))})
