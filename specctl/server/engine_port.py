"""What the server asks of an engine and of a target, as types: the bundled runtime has it, and so do the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from specctl.runtime.options import Counters
from specctl.runtime.request import Emission, Request
from specctl.runtime.stats import SpecStats


class EnginePort(Protocol):
    """A single-threaded engine: `add`, `abort` and `step` are called from one thread."""

    @property
    def num_speculative_tokens(self) -> int:
        """k; 0 without a proposer."""
        ...

    @property
    def lossless(self) -> bool:
        """Whether the answers follow the target's distribution."""
        ...

    @property
    def num_running(self) -> int:
        """Requests that have a slot."""
        ...

    @property
    def num_waiting(self) -> int:
        """Requests that were added and have no slot yet."""
        ...

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use, 0 to 1."""
        ...

    @property
    def stats(self) -> SpecStats:
        """Counters over all requests since the start."""
        ...

    @property
    def counters(self) -> Counters:
        """What else is counted since the start."""
        ...

    def add(self, request: Request) -> None:
        """Take a request in; raises SpecctlError when it does not fit."""
        ...

    def abort(self, request_id: str) -> bool:
        """Drop a request and free its slot at once."""
        ...

    def has_work(self) -> bool:
        """Whether `step` would do something."""
        ...

    def step(self) -> Iterable[Emission]:
        """One scheduling step."""
        ...


class TargetPort(Protocol):
    """The target model's tokenizer and limits."""

    @property
    def vocab_size(self) -> int:
        """Token ids run from 0 to this, excluded."""
        ...

    @property
    def has_chat_template(self) -> bool:
        """Whether `encode_chat` works."""
        ...

    @property
    def writes_tool_calls(self) -> bool:
        """Whether the chat template shows the model how to call tools in <tool_call> tags."""
        ...

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Text to token ids; `special`: with the tokens that the tokenizer puts around a prompt."""
        ...

    def encode_chat(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """A conversation, rendered for the answer to follow, to token ids."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to a text."""
        ...

    def check_grammar(self, grammar: str) -> str | None:
        """What is wrong with a grammar, None where answers can keep to it."""
        ...

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Token ids to text."""
        ...
