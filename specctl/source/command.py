"""A command line as a document: its text is the line as one would type it, every token has its place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

from specctl.diagnostics import Span
from specctl.source.document import Document

CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-[]~")


def command_document(tokens: Sequence[str], source: str = "<argv>") -> Document:
    """A document whose value is the list of tokens and whose places are those of the tokens in the shown line.

    A token that needs quotes is shown in single quotes; one that holds a single quote is shown as it is, so that
    offsets inside a token always hold."""
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for token in tokens:
        quote = "" if token and (set(token) <= _SAFE or "'" in token) else "'"
        parts.append(f"{quote}{token}{quote}")
        starts.append(at + len(quote))
        at += len(parts[-1]) + 1
    document = Document(source, " ".join(parts), "argv", list(tokens))
    line, begin = 1, 0  # of the line that is reached: its number, and where it begins
    for number, (token, start) in enumerate(zip(tokens, starts, strict=True)):
        first, column = line, start - begin + 1
        if "\n" in token:
            line += token.count("\n")
            begin = start + token.rindex("\n") + 1
        document.values[(number,)] = Span(first, column, line, start + len(token) - begin + 1)
    return document


def environment_of(tokens: Sequence[str]) -> dict[str, str]:
    """The variables that a command line sets: `NAME=value` in front of the program, `-e NAME=value` of a container."""
    found: dict[str, str] = {}
    for token in tokens:
        name, equals, value = token.partition("=")
        if token in ("env", "exec", "sudo", "nohup") and not equals:
            continue
        if not (equals and name.isidentifier()):
            break
        found[name] = value
    for flag, value in pairwise(tokens):
        name, equals, text = value.partition("=")
        if flag in ("-e", "--env") and equals and name.isidentifier():
            found[name] = text
    return found


def entry_behind_an_image(tokens: Sequence[str], begin: int) -> tuple[str | None, int, int]:
    """As `entry_of`, for a container whose command is an engine's own: `docker run IMAGE python -m sglang...`."""
    for at in range(begin + 1, len(tokens)):
        engine, own, words = entry_of(tokens[at : at + 8])
        if engine is not None and "=" not in tokens[at]:
            return engine, at + own, words
    return None, 0, 0


def _is_entry(tokens: Sequence[str]) -> bool:
    return "=" not in tokens[0] and entry_of(tokens[:8])[0] is not None


def entry_of(tokens: Sequence[str]) -> tuple[str | None, int, int]:
    """Which program a command line starts, how many tokens its own words take, and how many positional words may
    follow.

    Knows `vllm serve MODEL`, `python -m vllm.entrypoints...`, `python -m sglang.launch_server`, `sglang serve MODEL`,
    `trtllm-serve [serve] MODEL`; (None, 0, 0) for anything else, such as bare flags.
    """
    words = [PurePath(token).name if not token.startswith("-") else token for token in tokens[:8]]
    at = 0
    while at < len(words) and (
        ("=" in words[at] and not words[at].startswith("-")) or words[at] in ("env", "exec", "sudo", "nohup")
    ):
        at += 1
    if words[at : at + 1] and words[at] in CONTAINERS:
        image = next((n for n, token in enumerate(tokens) if "vllm/vllm-openai" in token and n > at), None)
        if image is None or any(_is_entry(tokens[n:]) for n in range(image + 1, min(image + 4, len(tokens)))):
            return entry_behind_an_image(tokens, at)
        if words[at] == "kubectl":
            image = next((n for n, token in enumerate(tokens) if token == "--" and n > image), image)
        return "vllm", image + 1, 1  # the image's own program is `vllm serve`
    head = words[at : at + 3]
    if head[:2] in (["vllm", "serve"], ["vllm", "bench"]):
        return "vllm", at + 2, 1
    if head[:2] == ["sglang", "serve"]:
        return "sglang", at + 2, 1
    if head[:1] == ["trtllm-serve"]:
        return "trtllm", at + (2 if head[1:2] == ["serve"] else 1), 1
    if head[:1] and head[0].startswith("python") and head[1:2] == ["-m"] and len(head) == 3:
        module = tokens[at + 2]
        if module.startswith("vllm."):
            return "vllm", at + 3, 0
        if module.startswith("sglang"):
            return "sglang", at + 3, 0
        if module.startswith("tensorrt_llm"):
            return "trtllm", at + 3, 1
    return None, at if at and words[at - 1] != "env" else 0, 0
