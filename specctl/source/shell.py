"""Simple commands of a shell text, word by word, each character with its place in the file.

Knows quotes, backslashes, continued lines, comments, redirections, and variables that the same text sets once to a
plain value. Any other variable, command substitution or template mark stays in the word as it is written, and the
word names it (`unknown`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from specctl.source.mapped import Mapped, unescaped

MASK = "\ue000"  # stands for each character of a template mark; a file's own text never holds it
LONGEST = 1 << 16  # characters of a variable's value; no setting needs more, and values of values grow fast
_ENDS = "\n;&|()"
_BREAKS = " \t" + _ENDS + "<>"
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\}|\((\w+)\))")
_ODD = re.compile(r"\$\{[^}]*\}|\$\((?:[^()]|\([^()]*\))*\)|\$[@*#?!]")
_REDIRECTION = re.compile(r"(?:\d?>&[\d-])|(?:\d|&)?(>>?|<<?<?-?)")
_BLANKS = re.compile(r"(?:[ \t\r]|\\\r?\n)*")
_ASSIGNMENT = re.compile(
    r"(?m)^[ \t]*(?:export[ \t]+|readonly[ \t]+|local[ \t]+|ENV[ \t]+|ARG[ \t]+|declare[ \t]+(?:-\w+[ \t]+)?"
    r"|Environment=['\"]?)?([A-Za-z_]\w*)(\+?=|[ \t]*[:?]=[ \t]*|[ \t]+=[ \t]*)"
)


@dataclass(frozen=True)
class Word:
    """One word as the program gets it; `unknown` names the variables in it whose value the text does not hold."""

    mapped: Mapped
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The word's text."""
        return self.mapped.text


Variables = Mapping[str, list[Word]]


@dataclass
class _Builder:
    """Collects the characters of a word; an unquoted variable may hold several words."""

    done: list[Word] = field(default_factory=list)
    pairs: list[tuple[str, int]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    open: bool = False

    def close(self) -> None:
        if self.open:
            self.done.append(Word(Mapped.of(self.pairs), tuple(self.unknown)))
        self.pairs, self.unknown, self.open = [], [], False

    def add(self, pairs: Iterable[tuple[str, int]]) -> None:
        self.pairs += pairs
        self.open = True

    def splice(self, words: list[Word]) -> None:
        for number, word in enumerate(words):
            if number:
                self.close()
            self.add(word.mapped.pairs())
            self.unknown += word.unknown


class Shell:
    """Reads one shell text. `variables`: what is known of them, see `assignments`; `make`: it is a makefile's."""

    def __init__(self, source: Mapped, variables: Variables | None = None, *, make: bool = False) -> None:
        self.source, self.text, self.variables, self.make = source, source.text, variables or {}, make

    def command(self, at: int) -> tuple[list[Word], int]:
        """The words of the simple command that begins at `at`, and where it ends."""
        words: list[Word] = []
        while True:
            at = self.blanks(at)
            char = self.text[at : at + 1]
            if not char or char in _ENDS:
                return words, at
            if char == "#":
                end = self.text.find("\n", at)
                return words, len(self.text) if end < 0 else end
            redirection = _REDIRECTION.match(self.text, at)
            if redirection:
                at = redirection.end()
                if redirection.group(1):  # what follows is the file
                    at = self.word(self.blanks(at), _Builder())
                continue
            builder = _Builder()
            after = self.word(at, builder)
            words += builder.done
            at = max(after, at + 1)

    def blanks(self, at: int) -> int:
        """Behind blanks and continued line ends."""
        found = _BLANKS.match(self.text, at)
        return found.end() if found else at

    def word(self, at: int, builder: _Builder) -> int:
        """Read one word into `builder`; returns where it ends."""
        while at < len(self.text) and self.text[at] not in _BREAKS:
            at = self.piece(at, builder)
        builder.close()
        return at

    def piece(self, at: int, builder: _Builder) -> int:
        char = self.text[at]
        if char == "'":
            end = self.text.find("'", at + 1)
            end = len(self.text) if end < 0 else end
            self.verbatim(at + 1, end, builder)
            return end + 1
        if char == '"':
            return self.quoted(at + 1, builder)
        if char == "\\":
            if self.text[at + 1 : at + 2] != "\n":
                builder.add(self.source.part(at + 1, at + 2).pairs())
            return at + 2
        if char == "$":
            return self.variable(at, builder, split=True)
        return self.plain(at, builder)

    def verbatim(self, at: int, end: int, builder: _Builder) -> None:
        """What stands between single quotes; make fills in its variables before the shell sees the quotes."""
        if not self.make or "$" not in self.text[at:end]:
            builder.add(self.source.part(at, end).pairs())
            if MASK in self.text[at:end] and "a template mark" not in builder.unknown:
                builder.unknown.append("a template mark")
            return
        while at < end:
            named = VARIABLE.match(self.text, at, end)
            name = next((each for each in named.groups() if each), "") if named else ""
            start = next((word.mapped.at[0] for word in self.variables.get(name, ()) if word.text), at)
            if named and start < at:  # as it stands in its line above, quotes and all
                start -= self.text[start - 1] in ("'", '"')
                line = self.text.find("\n", start)
                self.verbatim(start, len(self.text[:line].rstrip()), builder)
                at = named.end()
            else:
                at = self.variable(at, builder, split=False) if named else self.plain(at, builder)

    def quoted(self, at: int, builder: _Builder) -> int:
        builder.add(())
        while at < len(self.text) and self.text[at] != '"':
            if self.text[at] == "\\" and self.text[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
                if self.text[at + 1] != "\n":
                    builder.add(self.source.part(at + 1, at + 2).pairs())
                at += 2
            elif self.text[at] == "$":
                at = self.variable(at, builder, split=False)
            else:
                at = self.plain(at, builder)
        return at + 1

    def plain(self, at: int, builder: _Builder) -> int:
        builder.add(self.source.part(at, at + 1).pairs())
        if self.text[at] == MASK and "a template mark" not in builder.unknown:
            builder.unknown.append("a template mark")
        return at + 1

    def variable(self, at: int, builder: _Builder, *, split: bool) -> int:
        named = VARIABLE.match(self.text, at)
        name = next((each for each in named.groups() if each), "") if named else ""
        if named and name in self.variables:
            value = self.variables[name]
            builder.open = builder.open or not split
            builder.splice(list(_fields(value)) if split else value)
            return named.end()
        found = named or _ODD.match(self.text, at)
        end = found.end() if found else at + 1
        if found:
            builder.unknown.append(self.text[at:end])
        builder.add(self.source.part(at, end).pairs())
        return end


def _fields(words: list[Word]) -> Iterator[Word]:
    """Words of an unquoted variable: the shell cuts its value at blanks."""
    for word in words:
        for found in re.finditer(r"\S+", word.text):
            yield Word(word.mapped.part(*found.span()), word.unknown)


def assignments(source: Mapped) -> dict[str, list[Word]]:
    """The variables that a text sets to one value; those set several times are left out, for who knows when."""
    known: dict[str, list[Word]] = {}
    often: set[str] = set()
    for name, sign, value in assigned(source, known):
        grown = value + (known.get(name, []) if sign == "+=" else [])
        if sum(len(word.text) for word in grown) > LONGEST:
            often.add(name)
        elif sign == "+=":
            known[name] = known.get(name, []) + value
        elif name in known:
            often.add(name)
        else:
            known[name] = value
    return {name: words for name, words in known.items() if name not in often}


def assigned(source: Mapped, known: Variables | None = None) -> Iterator[tuple[str, str, list[Word]]]:
    """Each assignment of a text: name, sign, value. `known`: the variables that may stand in a value."""
    for found in _ASSIGNMENT.finditer(source.text):
        name, sign = found.group(1), found.group(2).strip()
        opening = source.text[found.start(1) - 1 : found.start(1)]
        if found.group().lstrip().startswith("Environment=") or opening in ("'", '"'):
            yield name, sign, [_of_unit(source, found.end(), opening)]
            continue
        make = sign in (":=", "?=") or sign != found.group(2)
        yield name, sign, _value(Shell(source, dict(known or {})), found.end(), make=make)


def _of_unit(source: Mapped, at: int, opening: str) -> Word:
    """The value in a unit's `Environment="NAME=value"`, where a backslash escapes as in C."""
    close = rf"(?:[^{opening}\\\n]|\\.)*" if opening in ("'", '"') else r"(?:[^\s\\]|\\.)*"
    found = re.compile(close).match(source.text, at)
    raw = source.text[at : found.end() if found else at]
    return Word(Mapped.of((char, source.at[place]) for char, place in unescaped(raw, at)))


def _value(shell: Shell, at: int, *, make: bool) -> list[Word]:
    if shell.text[at : at + 1] == "(":
        words: list[Word] = []
        at += 1
        while at < len(shell.text) and shell.text[at] != ")":
            found, after = shell.command(at)
            words += found
            at = after + (after < len(shell.text) and shell.text[after] != ")")
        return words
    if make:
        return shell.command(at)[0]
    builder = _Builder()
    shell.word(at, builder)
    return builder.done
