"""Coding tasks: writing a small function, and editing one that stands in the prompt."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from train.corpus.snippets import Snippet, identifier, snippet
from train.corpus.words import ADJECTIVES, Example, plural, say

CATEGORY = "coding"
Edit = tuple[str, list[str]]
Editor = Callable[[Random, Snippet], "Edit | None"]


def _rename(rng: Random, code: Snippet) -> Edit | None:
    old = rng.choice(code.names)
    new = identifier(rng)
    if new in " ".join(code.lines):
        return None
    lines = [re.sub(rf"\b{old}\b", new, line) for line in code.lines]
    ask = say(
        rng,
        "{Rename|Please rename|Can you rename} `{old}` to `{new}` {in this code|here|below|in the code below}{.|:}"
        if rng.random() < 0.7
        else "{Use|Please use} the name `{new}` {instead of|rather than} `{old}`{.|:| in this code:}",
        old=old,
        new=new,
    )
    return ask, lines


def _constant(rng: Random, code: Snippet) -> Edit | None:
    spots = [(i, m) for i, line in enumerate(code.lines) for m in re.finditer(r"(?<![\w\"])\d+(?!\w)", line)]
    spots = [(i, m) for i, m in spots if int(m.group()) > 1]
    if not spots:
        return None
    at, match = rng.choice(spots)
    old, new = match.group(), str(rng.randint(2, 99))
    if old == new or sum(m.group() == old for _, m in spots) > 1:
        return None
    line = code.lines[at]
    lines = [*code.lines[:at], line[: match.start()] + new + line[match.end() :], *code.lines[at + 1 :]]
    ask = say(
        rng,
        "{Change|Please change|Set} the {number|value|constant} {old} to {new}{.|:| in this code:}",
        old=old,
        new=new,
    )
    return ask, lines


def _docstring(rng: Random, code: Snippet) -> Edit | None:
    if not code.lines[0].startswith("def "):
        return None
    text = say(
        rng,
        "{Return|Compute|Give back|Work out} the {adj} {noun}{.| of a {noun2}.}",
        adj=rng.choice(ADJECTIVES),
        noun=rng.choice(code.words),
        noun2=identifier(rng, 1),
    )
    lines = [code.lines[0], f'    """{text}"""', *code.lines[1:]]
    return say(rng, '{Add|Please add|Put in} the docstring "{text}"{:| to this function:| here:}', text=text), lines


def _comment(rng: Random, code: Snippet) -> Edit | None:
    text = say(
        rng,
        "{adj} {words} {first|only|come last|for now|are checked}",
        adj=rng.choice(ADJECTIVES),
        words=plural(rng.choice(code.words)),
    )
    mark = "--" if code.language == "sql" else "//" if code.language == "javascript" else "#"
    ask = say(rng, '{Add|Put|Write} the comment "{text}" {on top|above the code|as the first line}{:|.}', text=text)
    return ask, [f"{mark} {text}", *code.lines]


def _operator(rng: Random, code: Snippet) -> Edit | None:
    spots = [
        (i, op) for i, line in enumerate(code.lines) for op in (" > ", " < ", " >= ", " <= ", " == ") if op in line
    ]
    if len(spots) != 1:
        return None
    at, old = spots[0]
    new = rng.choice([op for op in (" > ", " < ", " >= ", " <= ", " == ") if op != old])
    lines = [line.replace(old, new) if i == at else line for i, line in enumerate(code.lines)]
    ask = say(rng, "{Replace|Swap} `{old}` {by|with} `{new}`{.| in the condition:|:}", old=old.strip(), new=new.strip())
    return ask, lines


def _print(rng: Random, code: Snippet) -> Edit | None:
    if code.language != "python" or not code.lines[-1].startswith("    return "):
        return None
    text = say(rng, "{adj} {word} {done|ready|found|checked}", adj=rng.choice(ADJECTIVES), word=rng.choice(code.words))
    ask = say(
        rng,
        '{Print|Let it print|Make it print} "{text}" {before it returns|before the return|just before returning}{:|.}',
        text=text,
    )
    return ask, [*code.lines[:-1], f'    print("{text}")', code.lines[-1]]


EDITORS: list[Editor] = [_rename, _rename, _rename, _constant, _constant, _docstring, _comment, _operator, _print]


def _block(code: Snippet, lines: list[str]) -> str:
    return f"```{code.language}\n" + "\n".join(lines) + "\n```"


def edit(rng: Random) -> Example:
    """A change to code that the prompt holds; the answer is the whole code again."""
    while True:
        code = snippet(rng)
        made = rng.choice(EDITORS)(rng, code)
        if made is not None:
            break
    ask, lines = made
    block = _block(code, code.lines)
    prompt = f"{ask}\n{block}" if rng.random() < 0.75 or ask.endswith(":") else f"{block}\n{ask}"
    lead = say(rng, "{|Here is the changed code:\n|Done:\n|Sure:\n|Here it is:\n}")
    return Example(CATEGORY, "edit", prompt, lead + _block(code, lines), [line.strip() for line in lines])


def write(rng: Random) -> Example:
    """A function written from a sentence that names it, its parameters and its constants."""
    code = snippet(rng)
    lang = {"python": "Python", "javascript": "JavaScript", "sql": "SQL"}[code.language]
    ask = say(rng, code.ask, lang=lang)
    lead = say(rng, "{|Here is the code:\n|Sure:\n|This does it:\n}")
    tail = say(rng, "{||\n{tell}}", tell=say(rng, code.tell, lang=lang))
    return Example(CATEGORY, "write", ask, lead + _block(code, code.lines) + tail, code.slots)
