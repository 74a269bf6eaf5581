"""The prompts of a run: bundled ones or the user's own files, chosen evenly over the categories."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from specctl.bench.prompt_rows import SHAPES, NoQuestion, Prompt, read_row
from specctl.errors import MissingError, SpecctlError, UsageError
from specctl.resources import bundled_dir

BUNDLED_PROMPTS = "bundled"
DEMO_SET, TEXT_SET = "demo", "text"
SETS = {DEMO_SET: "prompts.jsonl", TEXT_SET: "prompts-text.jsonl"}
MAX_NAMED_ROWS = 5


@dataclass(frozen=True)
class Workload:
    """The prompts of a run in the order of their indices; `source` is `bundled` or the file's name.

    `random_text`: the prompts are no real text, so what is accepted says nothing. `notes`: what the user must know
    about how they were read.
    """

    source: str
    prompts: tuple[Prompt, ...]
    random_text: bool = False
    notes: tuple[str, ...] = ()

    @property
    def categories(self) -> list[str]:
        """The categories in order of first appearance."""
        return list(dict.fromkeys(prompt.category for prompt in self.prompts))


class Coder(Protocol):
    """The part of a runtime target that turns prompts into token ids, and answers into text."""

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

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids."""
        ...


def read_workload(path: str | None = None, bundled: str = DEMO_SET) -> Workload:
    """Read every prompt of `path`: a file, a folder of JSONL files (SPEED-Bench), or the name of a bundled set.

    None: the set `bundled`. Raises `MissingError` where there is no such file, `SpecctlError` naming the lines that are
    not a prompt.
    """
    name = bundled if path is None else path
    if name in SETS:
        prompts, _ = _read_file(bundled_dir() / SETS[name])
        return Workload(BUNDLED_PROMPTS if name == DEMO_SET else name, tuple(prompts))
    file = Path(name)
    prompts, skipped = _read_folder(file) if file.is_dir() else _read_file(file)
    return Workload(name, tuple(prompts), notes=_left_out(prompts, skipped))


def _left_out(prompts: Sequence[Prompt], skipped: int) -> tuple[str, ...]:
    """ShareGPT's rows go on from a recorded answer that is not the model's, so the field asks their beginning alone."""
    rows = sum(prompt.left_out > 0 for prompt in prompts)
    told = (
        (rows, f"of {rows} recorded conversations only what stands before their first answer is asked"),
        (skipped, f"{skipped} recorded conversations hold no question and are left out"),
    )
    return tuple(note for count, note in told if count)


def _read_folder(folder: Path) -> tuple[list[Prompt], int]:
    """Every `*.jsonl` of a folder; ids get the file's name in front, so that they stay apart."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise MissingError(f"no .jsonl file lies in {folder}")
    read = [(file.stem, *_read_file(file)) for file in files]
    prompts = [replace(each, id=f"{name}/{each.id}") for name, found, _ in read for each in found]
    return prompts, sum(skipped for _, _, skipped in read)


def _read_file(file: Path) -> tuple[list[Prompt], int]:
    """Its prompts, and how many rows hold no question."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecctlError(f"{file} is not UTF-8 text (byte {error.start})", help="give a JSONL file") from None
    except OSError as error:
        raise MissingError(f"cannot read the prompts {file}: {error.strerror or error}") from None
    prompts, problems, skipped = _read_rows(text)
    problems = problems or (skipped if not prompts else [])
    if problems:
        raise SpecctlError(_named(str(file), problems), help=f"a row is one of {SHAPES}")
    if not prompts:
        raise SpecctlError(f"{file} holds no prompts", help=f"write one JSON object a line: {SHAPES}")
    return prompts, len(skipped)


def _read_rows(text: str) -> tuple[list[Prompt], list[str], list[str]]:
    prompts, problems, skipped = [], [], []
    for place, number, row in _rows(text):
        try:
            prompts.append(read_row(json.loads(row) if isinstance(row, str) else row, number))
        except json.JSONDecodeError as error:
            problems.append(f"{place}, column {error.colno}: not JSON: {error.msg}")
        except NoQuestion as error:
            skipped.append(f"{place}: {error}")
        except (ValueError, RecursionError) as error:
            problems.append(f"{place}: {error}")
    return prompts, problems, skipped


def _rows(text: str) -> Iterator[tuple[str, int, Any]]:
    """Where a row stands, its number and the row: lines of JSON, or the items of one array (ShareGPT's files)."""
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError):
            items = None  # its lines are told one by one
        if isinstance(items, list) and items and isinstance(items[0], dict):
            yield from ((f"item {number}", number, item) for number, item in enumerate(items, start=1))
            return
    # Not splitlines(): it also cuts at characters such as U+2028 that may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"line {number}", number, line


def _named(file: str, problems: list[str]) -> str:
    shown = problems[:MAX_NAMED_ROWS]
    more = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
    return "\n  ".join([f"{file}: {len(problems)} row(s) are no prompt", *shown, *more])


def choose(
    workload: Workload,
    categories: Sequence[str] | None = None,
    num_prompts: int | None = None,
    rounds: int = 1,
    replayed: bool = False,
) -> Workload:
    """Prompts of the wanted `categories` (None: all), taken from each in turn: `num_prompts` (None: all) for each of as
    many of the `rounds` as there are prompts for. `replayed`: in the order in which they arrived.

    Raises `UsageError` for a category that is not there and for more prompts than there are: repeating prompts would
    flatter every method that remembers text.
    """
    known = workload.categories
    for name in categories or ():
        if name not in known:
            raise UsageError(f"no prompts of category {name!r}", help=f"the categories here are {', '.join(known)}")
    wanted = known if categories is None else list(dict.fromkeys(categories))
    mixed = list(_in_turn([[p for p in workload.prompts if p.category == name] for name in wanted]))
    if replayed:
        mixed = sorted((p for p in workload.prompts if p.category in wanted), key=lambda prompt: prompt.at_s or 0.0)
    if num_prompts is None:
        return replace(workload, prompts=tuple(mixed))
    if num_prompts > len(mixed):
        raise UsageError(f"{num_prompts} prompts are wanted, {len(mixed)} are there", help="give more with --prompts")
    filled = max(1, min(rounds, len(mixed) // num_prompts))
    return replace(workload, prompts=tuple(mixed[: num_prompts * filled]))


def _in_turn(groups: list[list[Prompt]]) -> Iterator[Prompt]:
    for layer in zip_longest(*groups):
        yield from (prompt for prompt in layer if prompt is not None)


def encode(workload: Workload, target: Coder) -> Workload:
    """The same workload with token ids: through the chat template where the target has one, else the bare text."""
    return replace(workload, prompts=tuple(replace(p, token_ids=tuple(tokens_of(p, target))) for p in workload.prompts))


def tokens_of(prompt: Prompt, target: Coder) -> list[int]:
    """Token ids of one prompt."""
    if prompt.token_ids:
        return list(prompt.token_ids)
    if target.has_chat_template:
        return target.encode_chat([dict(message) for message in prompt.messages])
    return target.encode(as_text(prompt))


def as_text(prompt: Prompt) -> str:
    """A conversation as plain text, for models and endpoints without a chat form."""
    return "\n\n".join(message["content"] for message in prompt.messages)
