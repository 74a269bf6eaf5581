"""Tokens to text while they arrive: never a half character, never a piece of a stop string."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# A decoder that lacks the last bytes of a character puts this in their place.
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"

Decode = Callable[[Sequence[int]], str]


class TextStream:
    """The text of one request's output.

    ``push`` takes one token and answers the stop string that it completed, if any; ``take`` hands out the text that has
    become final since the last call. Text is held back while it ends inside a character or could begin a stop string.
    ``include_stop``: the stop string itself stays in the text.
    """

    def __init__(self, decode: Decode, stop: Sequence[str] = (), include_stop: bool = False) -> None:
        self._decode = decode
        self._stop = stop
        self._include_stop = include_stop
        self._tokens: list[int] = []
        # The text of tokens[begin:read] is already in _text; decoding from `begin` on gives each token its left
        # context.
        self._begin = 0
        self._read = 0
        self._text = ""
        self._taken = 0
        self._free = 0  # characters at the beginning in which a stop string does not count
        self._ended = False

    def push(self, token: int, search: bool = True) -> str | None:
        """Add a token; the stop string that now stands in the text, the earliest first, or None.

        Without ``search`` none is looked for, in what stands so far, now or later.
        """
        self._tokens.append(token)
        before = self._decode(self._tokens[self._begin : self._read])
        after = self._decode(self._tokens[self._begin :])
        if after.endswith(_INCOMPLETE) or len(after) <= len(before):
            return None
        searched = len(self._text)
        self._text += after[len(before) :]
        self._begin, self._read = self._read, len(self._tokens)
        if not search:
            self._free = len(self._text)
            return None
        return self._find_stop(searched)

    def _find_stop(self, searched: int) -> str | None:
        hits = []
        for stop in self._stop:
            place = self._text.find(stop, max(self._free, searched - len(stop) + 1))
            if place >= 0:
                hits.append((place, stop))
        if not hits:
            return None
        place, stop = min(hits)
        end = place + len(stop) if self._include_stop else place
        self._text, self._ended = self._text[:end], True
        return stop

    def take(self, finished: bool) -> str:
        """The text that is final now; with ``finished`` all of it, an incomplete character as its replacement."""
        if finished and not self._ended:
            known = len(self._decode(self._tokens[self._begin : self._read]))
            self._text += self._decode(self._tokens[self._begin :])[known:]
            self._read, self._ended = len(self._tokens), True
        end = len(self._text) if finished else len(self._text) - self._could_be_stop()
        fresh, self._taken = self._text[self._taken : end], max(self._taken, end)
        return fresh

    def _could_be_stop(self) -> int:
        """How many characters at the end of the text are the beginning of a stop string."""
        longest = 0
        for stop in self._stop:
            for size in range(min(len(stop) - 1, len(self._text) - self._free), longest, -1):
                if self._text.endswith(stop[:size]):
                    longest = size
                    break
        return longest
