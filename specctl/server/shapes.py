"""Log probabilities in the shapes of the two endpoints, and of vLLM's `prompt_logprobs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specctl.runtime.request import TokenLogprobs

TokenBytes = Callable[[int], bytes]


class LogprobShapes:
    """`token_bytes`: the bytes of a token; `as_ids`: tokens are named `token_id:N` instead of by their text."""

    def __init__(self, token_bytes: TokenBytes, as_ids: bool = False) -> None:
        self._bytes = token_bytes
        self._as_ids = as_ids

    def _name(self, token: int) -> str:
        return f"token_id:{token}" if self._as_ids else self._bytes(token).decode("utf-8", "replace")

    def chat(self, entries: Sequence[TokenLogprobs]) -> dict[str, Any]:
        """`logprobs` of a chat choice."""
        content = [
            self._chat_token(entry.token, entry.logprob)
            | {"top_logprobs": [self._chat_token(token, value) for token, value in entry.top]}
            for entry in entries
        ]
        return {"content": content, "refusal": None}

    def _chat_token(self, token: int, logprob: float) -> dict[str, Any]:
        return {"token": self._name(token), "logprob": logprob, "bytes": list(self._bytes(token))}

    def completion(self, entries: Sequence[TokenLogprobs | None], tokens: Sequence[int], offset: int) -> dict[str, Any]:
        """`logprobs` of a completion choice whose `tokens` begin `offset` characters into its text.

        An entry is None where nothing stands before the token.
        """
        offsets, raw = [], b""
        for token in tokens:
            offsets.append(offset + len(raw.decode("utf-8", "ignore")))
            raw += self._bytes(token)
        return {
            "text_offset": offsets,
            "token_logprobs": [None if entry is None else entry.logprob for entry in entries],
            "tokens": [self._name(token) for token in tokens],
            "top_logprobs": [None if entry is None else self._alternatives(entry) for entry in entries],
        }

    def length(self, tokens: Sequence[int]) -> int:
        """Characters that `completion` counts for `tokens`."""
        return len(b"".join(self._bytes(token) for token in tokens).decode("utf-8", "ignore"))

    def _alternatives(self, entry: TokenLogprobs) -> dict[str, float]:
        """The most likely tokens, and the one that stands even where it is none of them."""
        found = {self._name(token): value for token, value in entry.top}
        return found | {self._name(entry.token): entry.logprob}

    def prompt(self, entries: Sequence[TokenLogprobs | None]) -> list[dict[str, Any] | None]:
        """vLLM's `prompt_logprobs`: by token id, with rank and text."""
        return [None if entry is None else self._ranked(entry) for entry in entries]

    def _ranked(self, entry: TokenLogprobs) -> dict[str, Any]:
        ranked = [(token, value, place) for place, (token, value) in enumerate(entry.top, start=1)]
        ranked.append((entry.token, entry.logprob, entry.rank))
        return {
            str(token): {"logprob": value, "rank": rank, "decoded_token": self._name(token)}
            for token, value, rank in ranked
        }
