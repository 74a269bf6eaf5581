"""A target: the network, its tokenizer and the facts that everything around it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from specctl.errors import DamagedError, SpecctlError
from specctl.runtime.grammar import GrammarCompiler
from specctl.runtime.models.loading import (
    Model,
    choose_device,
    choose_dtype,
    load_model,
    model_folder,
    read_config,
)


@dataclass(frozen=True)
class Target:
    """A loaded target. ``name`` is what the user typed; ``config`` is the transformers config of its text model."""

    name: str
    folder: Path
    config: Any
    model: Model
    tokenizer: Any

    @property
    def device(self) -> str:
        return str(self.model.device)

    @property
    def dtype(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size

    @property
    def max_model_len(self) -> int:
        """Tokens of context, prompt and output together."""
        return self.model.max_positions

    @cached_property
    def eos_token_ids(self) -> frozenset[int]:
        """What ends an output: the generation config's ids, else the config's, and the tokenizer's own."""
        return frozenset(_eos_ids(self.folder, self.config)) or frozenset(_ids(self.tokenizer.eos_token_id))

    @cached_property
    def grammars(self) -> GrammarCompiler:
        """Grammars over this tokenizer; raises SpecctlError where llguidance cannot read it."""
        return GrammarCompiler(self.tokenizer, self.vocab_size, list(self.eos_token_ids))

    @property
    def has_chat_template(self) -> bool:
        return bool(self.tokenizer.chat_template)

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Token ids of ``text``; ``special``: with the tokens that the tokenizer puts around a prompt."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=special)["input_ids"]
        return ids

    @property
    def writes_tool_calls(self) -> bool:
        """Whether the chat template shows the model how to call tools in <tool_call> tags."""
        return self.has_chat_template and "<tool_call>" in str(self.tokenizer.chat_template)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """Token ids of a conversation up to where the assistant begins; raises SpecctlError without a chat template."""
        if not self.has_chat_template:
            raise SpecctlError(
                f"{self.name} has no chat template",
                help="give plain text (/v1/completions, rows with 'prompt'), or a checkpoint of a chat model",
            )
        how: dict[str, Any] = {"add_generation_prompt": True, "return_dict": True}
        if tools:
            how["tools"] = list(tools)
        try:
            out = self.tokenizer.apply_chat_template(list(messages), **how)
        except Exception as error:  # the template is code of the checkpoint and may raise anything
            raise SpecctlError(f"the chat template of {self.name} refuses these messages: {error}") from error
        return list(out["input_ids"])

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ``ids``."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to a text, half a character included; a special token's are its name."""
        try:
            found: bytes = self.grammars.vocabulary.decode_bytes([token])
        except SpecctlError:  # a tokenizer that llguidance cannot read
            return self.decode([token], skip_special_tokens=False).encode()
        return found

    def check_grammar(self, grammar: str) -> str | None:
        """What is wrong with a grammar (see `specctl.runtime.grammar`); None where answers can keep to it."""
        try:
            return self.grammars.check(grammar)
        except SpecctlError as error:
            return error.message


def _ids(value: int | list[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else list(value)


def _eos_ids(folder: Path, config: Any) -> list[int]:
    import json

    path = folder / "generation_config.json"
    if path.is_file():
        try:
            found = _ids(json.loads(path.read_text("utf-8")).get("eos_token_id"))
        except (ValueError, AttributeError) as error:
            raise DamagedError(f"{path} is not a JSON object: {error}") from error
        if found:
            return found
    return _ids(getattr(config, "eos_token_id", None))


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of ``folder``; raises SpecctlError where there is none."""
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError, TypeError, ImportError) as error:
        raise SpecctlError(
            f"{folder} has no tokenizer that transformers can read: {error}",
            help="tokenizer.json and tokenizer_config.json must lie beside the weights",
        ) from error


def load_target(name: str, *, device: str = "auto", dtype: str = "auto") -> Target:
    """Load a target by bundled name, folder, GGUF file or id in the local cache.

    Raises MissingError (nothing there), DamagedError (unreadable files), UsageError (dtype, device), SpecctlError else.
    """
    folder = model_folder(name)
    config = read_config(folder)
    chosen = choose_device(device)
    tokenizer = load_tokenizer(folder)
    model = load_model(folder, config, choose_dtype(dtype, chosen, config), chosen)
    return Target(name, folder, config, model, tokenizer)


def set_threads(count: int) -> None:
    """CPU threads of torch's kernels."""
    torch.set_num_threads(count)
