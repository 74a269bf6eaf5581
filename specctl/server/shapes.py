"""Log probabilities in the shapes of the two endpoints, and of vLLM's `prompt_logprobs`."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from typing import Any

from specctl.runtime.request import TokenLogprobs

TokenBytes = Callable[[int], bytes]


class Offsets:
    """Where tokens begin in a text, in characters; a character that is spread over tokens counts with its last one."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("ignore")
        self._count = 0

    def take(self, raw: bytes) -> int:
        """Where the next token begins, whose bytes these are."""
        begin = self._count
        self._count += len(self._decoder.decode(raw))
        return begin


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

    def completion(
        self, entries: Sequence[TokenLogprobs | None], tokens: Sequence[int], offsets: Offsets
    ) -> dict[str, Any]:
        """`logprobs` of a completion choice for its next `tokens`. An entry is None where nothing stands before it."""
        return {
            "text_offset": [offsets.take(self._bytes(token)) for token in tokens],
            "token_logprobs": [None if entry is None else entry.logprob for entry in entries],
            "tokens": [self._name(token) for token in tokens],
            "top_logprobs": [None if entry is None else self._alternatives(entry) for entry in entries],
        }

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
