"""`ModelFacts`: the config.json of a checkpoint behind names that do not depend on the family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NESTED = ("text_config", "language_config", "llm_config")


@dataclass(frozen=True)
class ModelFacts:
    """Facts of one checkpoint. `name` is what the user wrote, `path` where it was found, `config` its config.json.

    A property is None where the config does not say; sizes of vision-language models come from their text part.
    """

    name: str
    path: Path
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> Mapping[str, Any]:
        """The part of the config that describes the language model."""
        thinker = self.config.get("thinker_config")
        outer = thinker if isinstance(thinker, Mapping) else self.config
        for key in _NESTED:
            inner = outer.get(key)
            if isinstance(inner, Mapping):
                return {**{k: v for k, v in self.config.items() if k not in _NESTED}, **inner}
        return self.config

    def number(self, *keys: str) -> int | None:
        """The first of `keys` that holds a whole number."""
        for key in keys:
            value = self.text.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @property
    def architectures(self) -> tuple[str, ...]:
        """The class names of the config, as they stand there."""
        listed = self.config.get("architectures")
        return tuple(str(each) for each in listed) if isinstance(listed, list) else ()

    @property
    def architecture(self) -> str:
        """The first class name, or an empty text."""
        return self.architectures[0] if self.architectures else ""

    @property
    def model_type(self) -> str:
        """`model_type` of the config (of its text part where only that has one), or an empty text."""
        return str(self.config.get("model_type") or self.text.get("model_type") or "")

    @property
    def vocab_size(self) -> int | None:
        """Rows of the embedding, padding included."""
        return self.number("vocab_size")

    @property
    def hidden_size(self) -> int | None:
        """Width of the residual stream."""
        return self.number("hidden_size", "n_embd", "d_model")

    @property
    def num_layers(self) -> int | None:
        """Decoder layers, prediction layers not counted."""
        return self.number("num_hidden_layers", "n_layer", "num_layers")

    @property
    def num_heads(self) -> int | None:
        """Attention heads."""
        return self.number("num_attention_heads", "n_head")

    @property
    def max_positions(self) -> int | None:
        """Positions the model was made for."""
        return self.number("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")

    @property
    def quant_method(self) -> str | None:
        """The quantization that the checkpoint itself declares."""
        found = self.text.get("quantization_config") or self.config.get("quantization_config")
        return str(found.get("quant_method") or "") or None if isinstance(found, Mapping) else None

    @property
    def dtype(self) -> str | None:
        """`torch_dtype` or `dtype`, as text."""
        found = self.text.get("torch_dtype") or self.text.get("dtype")
        return str(found) if found else None

    @property
    def speculators(self) -> Mapping[str, Any] | None:
        """The `speculators_config` of a checkpoint in the speculators format."""
        found = self.config.get("speculators_config")
        return found if isinstance(found, Mapping) else None

    @property
    def speculators_type(self) -> str:
        """The method a speculators checkpoint declares, or an empty text."""
        return str(self.config.get("speculators_model_type") or "")

    @property
    def verifier(self) -> str | None:
        """The target that a speculators checkpoint was trained for."""
        found = (self.speculators or {}).get("verifier")
        name = found.get("name_or_path") if isinstance(found, Mapping) else None
        return str(name) if name else None

    @property
    def proposed_tokens(self) -> int | None:
        """The token count that a speculators checkpoint proposes."""
        listed = (self.speculators or {}).get("proposal_methods")
        first = listed[0] if isinstance(listed, list) and listed else None
        count = first.get("speculative_tokens") if isinstance(first, Mapping) else None
        return count if isinstance(count, int) else None

    @property
    def block_size(self) -> int | None:
        """The block length of a block-drafting checkpoint (DFlash, DSpark)."""
        inner = self.config.get("dflash_config")
        nested = inner.get("block_size") if isinstance(inner, Mapping) else None
        found = self.number("block_size") or nested or self.number("dspark_block_size")
        return found if isinstance(found, int) else None

    @property
    def mask_token_id(self) -> int | None:
        """The token that stands for a place to be drafted, under whichever key a family keeps it."""
        inner = self.config.get("dflash_config")
        nested = inner.get("mask_token_id") if isinstance(inner, Mapping) else None
        found = self.number("mask_token_id", "dspark_noise_token_id", "pard_token", "ptd_token_id")
        return found if found is not None else nested if isinstance(nested, int) else None
