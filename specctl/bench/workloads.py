"""The prompts of a run: the bundled ones or the user's own JSONL, chosen evenly over the categories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from specctl.errors import MissingError, SpecctlError, UsageError
from specctl.resources import bundled_dir

BUNDLED_PROMPTS = "bundled"
UNNAMED_CATEGORY = "all"
MAX_NAMED_ROWS = 5

SHAPES = '{"prompt": "…"}, {"messages": [{"role", "content"}]}, or {"turns": ["…"], "category": "…"}'


@dataclass(frozen=True)
class Prompt:
    """One prompt as a conversation; `token_ids` is empty until `encode` has run."""

    id: str
    category: str
    messages: tuple[dict[str, str], ...]
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Workload:
    """The prompts of a run in the order of their indices; `source` is `bundled` or the file's name."""

    source: str
    prompts: tuple[Prompt, ...]

    @property
    def categories(self) -> list[str]:
        """The categories in order of first appearance."""
        return list(dict.fromkeys(prompt.category for prompt in self.prompts))


class Encoder(Protocol):
    """The part of a runtime target that turns prompts into token ids."""

    @property
    def has_chat_template(self) -> bool:
        """Whether conversations have a form of their own."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ...

    def encode_chat(self, messages: list[dict[str, Any]]) -> list[int]:
        """Token ids of a conversation, up to where the answer starts."""
        ...


def read_workload(path: str | None = None) -> Workload:
    """Read every prompt of `path` (None: the bundled prompts).

    Raises `MissingError` where there is no such file, `SpecctlError` naming the lines that are not a prompt.
    """
    file = bundled_dir() / "prompts.jsonl" if path is None else Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecctlError(f"{file} is not UTF-8 text (byte {error.start})", help="give a JSONL file") from None
    except OSError as error:
        raise MissingError(f"cannot read the prompts {file}: {error.strerror or error}") from None
    prompts, problems = _read_rows(text)
    if problems:
        raise SpecctlError(_named(str(file), problems), help=f"a row is one of {SHAPES}")
    if not prompts:
        raise SpecctlError(f"{file} holds no prompts", help=f"write one JSON object a line: {SHAPES}")
    return Workload(BUNDLED_PROMPTS if path is None else str(path), tuple(prompts))


def _read_rows(text: str) -> tuple[list[Prompt], list[str]]:
    prompts, problems = [], []
    # Not splitlines(): it also cuts at characters such as U+2028 that may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            prompts.append(_prompt(json.loads(line), number))
        except json.JSONDecodeError as error:
            problems.append(f"line {number}, column {error.colno}: not JSON: {error.msg}")
        except (ValueError, RecursionError) as error:
            problems.append(f"line {number}: {error}")
    return prompts, problems


def _named(file: str, problems: list[str]) -> str:
    shown = problems[:MAX_NAMED_ROWS]
    more = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
    return "\n  ".join([f"{file}: {len(problems)} row(s) are no prompt", *shown, *more])


def _prompt(row: object, number: int) -> Prompt:
    """A row as a prompt; raises ValueError saying what was found instead."""
    if not isinstance(row, dict):
        raise ValueError(f"a {_kind(row)} where an object belongs")
    category = row.get("category", UNNAMED_CATEGORY)
    if not isinstance(category, str) or not category:
        raise ValueError(f"category is {category!r}; it must be a non-empty string")
    name = row.get("id", row.get("question_id", f"line-{number}"))
    return Prompt(str(name), category, tuple(_messages(row)))


def _messages(row: dict[str, Any]) -> list[dict[str, str]]:
    if "messages" in row:
        return _conversation(row["messages"])
    if "turns" in row:
        turns = row["turns"]
        if not isinstance(turns, list) or not turns:
            raise ValueError("turns must be a non-empty list of strings")
        # Later turns need the model's own earlier answers, which differ between runtimes only if something is wrong.
        return [{"role": "user", "content": _text(turns[0], "turns[0]")}]
    if "prompt" in row:
        return [{"role": "user", "content": _text(row["prompt"], "prompt")}]
    keys = ", ".join(sorted(map(str, row))) or "none"
    raise ValueError(f"no messages, turns or prompt (keys: {keys})")


def _conversation(messages: object) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a non-empty list")
    found = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError(f"messages[{place}] must be an object with role and content")
        content = _text(_joined(message.get("content")), f"messages[{place}].content")
        found.append({"role": message["role"], "content": content})
    # Training rows end with the wanted answer; here the model has to give it.
    while found and found[-1]["role"] == "assistant":
        found.pop()
    if not found:
        raise ValueError("messages holds nothing but answers of the assistant")
    return found


def _joined(content: object) -> object:
    """OpenAI's list of content parts as one text; anything else unchanged."""
    if not isinstance(content, list):
        return content
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        raise ValueError("content parts other than text cannot be benchmarked")
    return "".join(str(part.get("text", "")) for part in content)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is {_kind(value)}; it must be a non-empty string")
    return value


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "blank string", bool: "boolean", int: "number", float: "number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def choose(workload: Workload, categories: Sequence[str] | None = None, num_prompts: int | None = None) -> Workload:
    """The first `num_prompts` prompts (None: all) of the wanted `categories` (None: all), taken from each in turn.

    Raises `UsageError` for a category that is not there and for more prompts than there are: repeating prompts would
    flatter every method that remembers text.
    """
    known = workload.categories
    for name in categories or ():
        if name not in known:
            raise UsageError(f"no prompts of category {name!r}", help=f"the categories here are {', '.join(known)}")
    wanted = known if categories is None else list(dict.fromkeys(categories))
    mixed = list(_in_turn([[p for p in workload.prompts if p.category == name] for name in wanted]))
    if num_prompts is not None and num_prompts > len(mixed):
        raise UsageError(f"{num_prompts} prompts are wanted, {len(mixed)} are there", help="give more with --prompts")
    return replace(workload, prompts=tuple(mixed[:num_prompts]))


def _in_turn(groups: list[list[Prompt]]) -> Iterator[Prompt]:
    for layer in zip_longest(*groups):
        yield from (prompt for prompt in layer if prompt is not None)


def encode(workload: Workload, target: Encoder) -> Workload:
    """The same workload with token ids: through the chat template where the target has one, else the bare text."""
    return replace(workload, prompts=tuple(replace(p, token_ids=tuple(_encode(p, target))) for p in workload.prompts))


def _encode(prompt: Prompt, target: Encoder) -> list[int]:
    if target.has_chat_template:
        return target.encode_chat([dict(message) for message in prompt.messages])
    return target.encode("\n\n".join(message["content"] for message in prompt.messages))
