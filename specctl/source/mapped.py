"""Text that was taken out of a file: every character still knows where in the file it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "e": "\x1b", "a": "\a", "v": "\v"}
_CODES = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True)
class Mapped:
    """`text`, and for each of its characters the offset in the file (`at`, as long as the text)."""

    text: str
    at: Sequence[int]

    @classmethod
    def whole(cls, text: str) -> Mapped:
        """A file's own text."""
        return cls(text, range(len(text)))

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, int]]) -> Mapped:
        """Text out of pairs of a character and its offset."""
        listed = list(pairs)
        return cls("".join(char for char, _ in listed), [offset for _, offset in listed])

    def part(self, start: int, end: int) -> Mapped:
        """The characters from `start` to before `end`."""
        return Mapped(self.text[start:end], self.at[start:end])

    def pairs(self) -> Iterable[tuple[str, int]]:
        """Each character with its offset."""
        return zip(self.text, self.at, strict=True)


def unescaped(raw: str, base: int) -> Iterable[tuple[str, int]]:
    """The characters of what stands between double quotes in JSON or YAML, each with its offset in the file."""
    at = 0
    while at < len(raw):
        char, after = raw[at], raw[at + 1 : at + 2]
        if char != "\\" or not after:
            yield char, base + at
            at += 1
            continue
        length = _CODES.get(after, 0)
        try:
            yield (chr(int(raw[at + 2 : at + 2 + length], 16)) if length else _ESCAPES.get(after, after)), base + at
        except (ValueError, OverflowError):
            yield after, base + at
        at += 2 + length


def aligned(value: str, stream: Iterable[tuple[str, int]], base: int) -> Mapped:
    """`value` laid beside the characters it was read from; YAML folds and indents, so blanks need not agree."""
    listed = list(stream)
    at, last, offsets = 0, base, []
    for char in value:
        if not char.isspace():
            while at < len(listed) and listed[at][0] != char:
                at += 1
        if at < len(listed):
            last = listed[at][1]
            if not char.isspace() or listed[at][0].isspace():
                at += 1
        offsets.append(last)
    return Mapped(value, offsets)
