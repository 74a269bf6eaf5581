"""Bench prompts first, then training documents that share no long run of tokens with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from train.corpus import chat, coding, math_problems, stories, summaries
from train.corpus.chat import END, Message, opening
from train.corpus.words import Example

BENCH_SEED, HELD_OUT_SEED, TRAIN_SEED = 20_001, 30_001, 40_001
RUN = 12
"""No run of this many tokens may stand both in a bench prompt and in the training data."""

Maker = Callable[[Random], Example]
MAKERS: dict[str, list[Maker]] = {
    "coding": [coding.edit, coding.edit, coding.write],
    "math": [math_problems.problem],
    "summarization": [summaries.summary],
    "writing": [stories.piece],
}
WEIGHTS = {"coding": 0.36, "math": 0.22, "summarization": 0.17, "writing": 0.25}
SYSTEM = ["You are a helpful assistant.", "Answer briefly.", "You are a demo model.", "Be kind and short."]


@dataclass
class Document:
    """A rendered conversation: `text` up to the last answer, then that answer with its end mark."""

    example: Example
    prompt: str
    answer: str


def _make(rng: Random, category: str) -> Example:
    return rng.choice(MAKERS[category])(rng)


def bench_examples(per_category: int = 20) -> list[Example]:
    """The held-out bench prompts; in coding three of five are edits."""
    rng = Random(BENCH_SEED)
    chosen: list[Example] = []
    for category in MAKERS:
        for index in range(per_category):
            maker = MAKERS[category][0] if category != "coding" or index % 5 < 3 else coding.write
            chosen.append(maker(rng))
    return chosen


def held_out(count: int) -> list[Example]:
    """Examples of all categories that are used for measuring alone."""
    rng = Random(HELD_OUT_SEED)
    names = list(MAKERS)
    return [_make(rng, names[i % len(names)]) for i in range(count)]


def render(messages: list[Message], example: Example) -> Document:
    """The document of a conversation that ends with the example."""
    turns = [*messages, {"role": "user", "content": example.prompt}]
    return Document(example, opening(turns), f"{example.answer}{END}")


def conversations(seed: int) -> Iterator[tuple[list[Message], Example]]:
    """An endless stream of what came before, mostly nothing, and the example that the conversation ends with."""
    rng = Random(seed)
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    while True:
        if rng.random() < 0.01:
            yield [], chat.small_talk(rng)
            continue
        example = _make(rng, rng.choices(names, weights)[0])
        history: list[Message] = [{"role": "system", "content": rng.choice(SYSTEM)}] if rng.random() < 0.04 else []
        if rng.random() < 0.05:
            before = _make(rng, rng.choice(names[1:]))
            history += [{"role": "user", "content": before.prompt}, {"role": "assistant", "content": before.answer}]
        yield history, example


def documents(seed: int) -> Iterator[Document]:
    """An endless stream of training conversations (not yet cleaned of bench runs)."""
    for history, example in conversations(seed):
        yield render(history, example)


def runs(ids: list[int]) -> set[tuple[int, ...]]:
    """All runs of RUN tokens."""
    return {tuple(ids[i : i + RUN]) for i in range(len(ids) - RUN + 1)}


class Filter:
    """Tells whether a document shares a run with a bench prompt."""

    def __init__(self, tokenizer: Tokenizer, bench: list[Example]) -> None:
        self.forbidden: set[tuple[int, ...]] = set()
        for example in bench:
            # The prompt's own words and the prompt as rendered: a tokenizer may join across the template's border.
            for text in (example.prompt, opening([{"role": "user", "content": example.prompt}])):
                self.forbidden |= runs(tokenizer.encode(text, add_special_tokens=False).ids)
        self.dropped = 0

    def clean(self, ids: list[int]) -> bool:
        """Whether the document may be trained on; counts those that may not."""
        shared = not self.forbidden.isdisjoint(runs(ids))
        self.dropped += shared
        return not shared


def write_prompts(path: Path, bench: list[Example]) -> None:
    """The bench prompts as JSON lines."""
    rows = []
    counts: dict[str, int] = {}
    for example in bench:
        counts[example.category] = counts.get(example.category, 0) + 1
        name = f"{example.category}-{example.kind}-{counts[example.category]:02d}"
        rows.append(
            {"id": name, "category": example.category, "messages": [{"role": "user", "content": example.prompt}]}
        )
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
