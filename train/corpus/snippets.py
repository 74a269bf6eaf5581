"""Small pieces of code of many shapes, with the sentence that asks for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from train.corpus.words import ADJECTIVES, IDENT_NOUNS, IDENT_VERBS, plural, syllables


@dataclass
class Snippet:
    """Code lines, identifiers that may be renamed, words for comments, and the two sentences about it."""

    language: str
    lines: list[str]
    names: list[str]
    words: list[str]
    ask: str
    tell: str
    slots: list[str] = field(default_factory=list)


def identifier(rng: Random, parts: int = 0) -> str:
    """A snake_case name of one or two words, at times with a made-up one."""
    pool = [rng.choice(IDENT_NOUNS), rng.choice(ADJECTIVES), syllables(rng, rng.choice((1, 2)))]
    count = parts or rng.choice((1, 2, 2))
    chosen = rng.sample(pool, count)
    word = "_".join(chosen)
    return word + "_x" if word in _RESERVED else word


_RESERVED = {
    "for",
    "in",
    "is",
    "if",
    "or",
    "and",
    "not",
    "def",
    "try",
    "as",
    "set",
    "sum",
    "max",
    "min",
    "len",
    "print",
    "file",
}


def _function(rng: Random, noun: str) -> str:
    return f"{rng.choice(IDENT_VERBS)}_{rng.choice([rng.choice(ADJECTIVES), syllables(rng, 2)])}_{noun}"


def _names(rng: Random, count: int) -> list[str]:
    made: list[str] = []
    while len(made) < count:
        name = identifier(rng)
        if name not in made:
            made.append(name)
    return made


def _python(lines: list[str], names: list[str], noun: str, ask: str, tell: str) -> Snippet:
    name = lines[0].split()[1].split("(")[0]
    start = "{Write a|I need a|Create a|Please write a|Give me a} {lang} function `" + name + "` that " + ask + "."
    return Snippet("python", lines, [name, *names], [noun], start, "It " + tell + ".", [name, *names])


def _filter(rng: Random) -> Snippet:
    one, out, limit = rng.choice(IDENT_NOUNS), *_names(rng, 2)
    many, op = plural(one), rng.choice((">", "<", ">=", "<="))
    words = {">": "above", "<": "below", ">=": "at least", "<=": "at most"}[op]
    lines = [
        f"def {_function(rng, many)}({many}, {limit}):",
        f"    {out} = []",
        f"    for {one} in {many}:",
        f"        if {one} {op} {limit}:",
        f"            {out}.append({one})",
        f"    return {out}",
    ]
    return _python(
        lines,
        [many, limit, out],
        one,
        f"{{collects|gathers|keeps}} the {many} {words} `{limit}` {{in a list|in}} `{out}`",
        f"keeps each {one} {words} `{limit}`",
    )


def _total(rng: Random) -> Snippet:
    one, out = rng.choice(IDENT_NOUNS), identifier(rng)
    many, factor = plural(one), rng.randint(2, 40)
    lines = [
        f"def {_function(rng, many)}({many}):",
        f"    {out} = 0",
        f"    for {one} in {many}:",
        f"        {out} += {one} * {factor}",
        f"    return {out}",
    ]
    return _python(
        lines,
        [many, out],
        one,
        f"adds up all {many} times {factor} {{in|into}} `{out}`",
        f"adds {factor} times each {one}",
    )


def _count(rng: Random) -> Snippet:
    one, out, wanted = rng.choice(IDENT_NOUNS), *_names(rng, 2)
    many = plural(one)
    lines = [
        f"def {_function(rng, many)}({many}, {wanted}):",
        f"    {out} = 0",
        f"    for {one} in {many}:",
        f"        if {one} == {wanted}:",
        f"            {out} += 1",
        f"    return {out}",
    ]
    return _python(
        lines,
        [many, wanted, out],
        one,
        f"counts in `{out}` how many {many} {{equal|are}} `{wanted}`",
        f"counts each {one} that equals `{wanted}`",
    )


def _largest(rng: Random) -> Snippet:
    one, best = rng.choice(IDENT_NOUNS), identifier(rng)
    many, size = plural(one), rng.choice((("largest", ">"), ("smallest", "<")))
    lines = [
        f"def {_function(rng, one)}({many}):",
        f"    {best} = {many}[0]",
        f"    for {one} in {many}:",
        f"        if {one} {size[1]} {best}:",
        f"            {best} = {one}",
        f"    return {best}",
    ]
    return _python(
        lines,
        [many, best],
        one,
        f"{{returns|finds}} the {size[0]} of the {many} {{as|in}} `{best}`",
        f"finds the {size[0]} {one}",
    )


def _comprehension(rng: Random) -> Snippet:
    one = rng.choice(IDENT_NOUNS)
    many, by, least = plural(one), rng.randint(2, 60), rng.randint(2, 60)
    op, word = rng.choice((("*", "times"), ("+", "plus"), ("-", "minus")))
    lines = [
        f"def {_function(rng, many)}({many}):",
        f"    return [{one} {op} {by} for {one} in {many} if {one} > {least}]",
    ]
    return _python(
        lines,
        [many],
        one,
        f"returns each {one} {word} {by} {{when|if}} it is above {least}",
        f"skips {many} up to {least}",
    )


def _tally(rng: Random) -> Snippet:
    one, out = rng.choice(IDENT_NOUNS), identifier(rng)
    many = plural(one)
    lines = [
        f"def {_function(rng, many)}({many}):",
        f"    {out} = {{}}",
        f"    for {one} in {many}:",
        f"        {out}[{one}] = {out}.get({one}, 0) + 1",
        f"    return {out}",
    ]
    lines[1] = f"    {out} = dict()"
    return _python(
        lines, [many, out], one, f"counts how often each {one} occurs, in a dict `{out}`", f"counts each {one}"
    )


def _grade(rng: Random) -> Snippet:
    value, noun = identifier(rng), rng.choice(IDENT_NOUNS)
    high, low, mid = rng.sample(ADJECTIVES, 3)
    upper = rng.randint(20, 99)
    lower = rng.randint(2, upper - 5)
    lines = [
        f"def {_function(rng, noun)}({value}):",
        f"    if {value} > {upper}:",
        f'        return "{high}"',
        f"    if {value} < {lower}:",
        f'        return "{low}"',
        f'    return "{mid}"',
    ]
    ask = f'returns "{high}" when `{value}` is above {upper}, "{low}" below {lower} and "{mid}" {{otherwise|else}}'
    return _python(lines, [value], noun, ask, f"names the {noun} by its size")


def _discount(rng: Random) -> Snippet:
    first, second, out = _names(rng, 3)
    noun, limit, off = rng.choice(IDENT_NOUNS), rng.randint(20, 99), rng.randint(2, 19)
    lines = [
        f"def {_function(rng, noun)}({first}, {second}):",
        f"    {out} = {first} * {second}",
        f"    if {out} > {limit}:",
        f"        {out} -= {off}",
        f"    return {out}",
    ]
    ask = f"multiplies `{first}` by `{second}` into `{out}`, and takes off {off} {{above|over|beyond}} {limit}"
    return _python(lines, [first, second, out], noun, ask, f"takes {off} off a large {noun}")


def _join(rng: Random) -> Snippet:
    first, second = _names(rng, 2)
    noun, sep = rng.choice(IDENT_NOUNS), rng.choice((" - ", ": ", " / ", ", ", " and ", " | "))
    lines = [f"def {_function(rng, noun)}({first}, {second}):", f'    return str({first}) + "{sep}" + str({second})']
    return _python(
        lines, [first, second], noun, f'joins `{first}` and `{second}` with "{sep}"', f"makes one text of the {noun}"
    )


def _read(rng: Random) -> Snippet:
    path, out, handle = _names(rng, 3)
    noun = rng.choice(IDENT_NOUNS)
    lines = [
        f"def {_function(rng, noun)}({path}):",
        f"    with open({path}) as {handle}:",
        f"        {out} = {handle}.read().split()",
        f"    return {out}[:{rng.randint(2, 90)}]",
    ]
    keep = lines[-1].split(":")[-1][:-1]
    ask = f"opens `{path}` as `{handle}` and returns the first {keep} words {{as|in}} `{out}`"
    return _python(lines, [path, handle, out], noun, ask, f"reads {keep} words of a {noun}")


def _klass(rng: Random) -> Snippet:
    noun, attr, method, amount = rng.choice(IDENT_NOUNS), *_names(rng, 3)
    name = "".join(p.capitalize() for p in identifier(rng, 2).split("_")) + noun.capitalize()
    start = rng.randint(2, 90)
    lines = [
        f"class {name}:",
        "    def __init__(self):",
        f"        self.{attr} = {start}",
        "",
        f"    def {method}(self, {amount}):",
        f"        self.{attr} += {amount}",
    ]
    ask = (
        f"{{Write a|Create a|I need a}} {{lang}} class `{name}` whose `{attr}` starts at {start}, with a "
        f"method `{method}` that adds `{amount}`."
    )
    return Snippet(
        "python",
        lines,
        [name, attr, method, amount],
        [noun],
        ask,
        f"A {noun} starts with {start}.",
        [name, attr, method, amount],
    )


def _sql(rng: Random) -> Snippet:
    table, key, other = _names(rng, 3)
    limit, few = rng.randint(2, 99), rng.randint(2, 60)
    lines = [f"SELECT {key}, {other}", f"FROM {table}", f"WHERE {other} > {limit}", f"ORDER BY {key}", f"LIMIT {few};"]
    ask = (
        f"{{Write|I need|Give me}} {{lang}} that takes `{key}` and `{other}` from `{table}` with `{other}` "
        f"above {limit}, "
        f"sorted by `{key}`, {few} rows at most."
    )
    return Snippet("sql", lines, [table, key, other], [key], ask, f"It reads at most {few} rows.", [table, key, other])


def _script(rng: Random) -> Snippet:
    first, second, out = _names(rng, 3)
    noun, plus = rng.choice(IDENT_NOUNS), rng.randint(2, 90)
    name = _function(rng, noun)
    lines = [
        f"function {name}({first}, {second}) {{",
        f"  const {out} = {first} + {second};",
        f"  return {out} * {plus};",
        "}",
    ]
    ask = (
        f"{{Write a|I need a|Create a}} {{lang}} function `{name}` that adds `{first}` and `{second}` into "
        f"`{out}` and returns it times {plus}."
    )
    return Snippet(
        "javascript",
        lines,
        [name, first, second, out],
        [noun],
        ask,
        f"The sum counts {plus} times.",
        [name, first, second, out],
    )


SHAPES: list[Callable[[Random], Snippet]] = [
    _filter,
    _total,
    _count,
    _largest,
    _comprehension,
    _tally,
    _grade,
    _discount,
    _join,
    _read,
    _klass,
    _sql,
    _script,
]


def snippet(rng: Random) -> Snippet:
    """One piece of code, its shape and all its words by chance."""
    return rng.choice(SHAPES)(rng)
