"""A text that a draft is led through: its tokens, what the target says after each of them, and the target's states.

The text is given, so one forward of the target answers for all places; it has a cache of its own for that. The bundled
conversations are short, and in the chat format of the target where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specctl.resources import bundled_dir
from specctl.runtime.kv_cache import Span
from specctl.runtime.target import Target

ANSWER = 20
ROOM = 96
# Rows of one forward: more need memory for their logits, fewer need time.
BATCH = 640


@dataclass(frozen=True)
class Text:
    """``tokens``, of which the first ``start`` are the prompt; drafts are asked for behind those."""

    tokens: list[int]
    start: int


class Lesson:
    """``texts`` as ``target`` reads them; the forward is run when something of it is first asked for."""

    def __init__(self, target: Target, texts: Sequence[Text]) -> None:
        self._target = target
        self.texts = list(texts)
        self.longest = max(len(text.tokens) for text in texts)
        self.cache: Any = target.model.make_cache(len(texts), self.longest)
        self._states: dict[int, list[Tensor]] = {}
        self._says: list[Tensor] = []

    def read(self, layers: Iterable[int]) -> None:
        """One forward for all that is not known yet of the states of ``layers`` (`specctl.runtime.models.hidden`)."""
        absent = sorted(set(layers) - set(self._states))
        if self._says and not absent:
            return
        found = [self._forward(batch, absent) for batch in self._batches()]
        self._says = [says for part, _ in found for says in part]
        for place, layer in enumerate(absent):
            self._states[layer] = [states[place] for _, part in found for states in part]

    def _batches(self) -> list[list[int]]:
        batches: list[list[int]] = [[]]
        rows = 0
        for number, text in enumerate(self.texts):
            if rows + len(text.tokens) > BATCH and batches[-1]:
                batches.append([])
                rows = 0
            batches[-1].append(number)
            rows += len(text.tokens)
        return batches

    def _forward(self, numbers: list[int], layers: list[int]) -> tuple[list[Tensor], list[list[Tensor]]]:
        """For each text what the target says at the scored places, and its states by layer."""
        texts = [self.texts[number] for number in numbers]
        tokens = [token for text in texts for token in text.tokens]
        spans = [Span(number, 0, len(text.tokens)) for number, text in zip(numbers, texts, strict=True)]
        begins = [sum(len(text.tokens) for text in texts[:place]) for place in range(len(texts))]
        rows = [begin + row for begin, t in zip(begins, texts, strict=True) for row in range(t.start, len(t.tokens))]
        model = self._target.model
        if layers:
            logits, hidden = model.forward_tapped(tokens, spans, self.cache, rows, layers)
        else:
            logits, hidden = model.forward(tokens, spans, self.cache, rows), torch.empty(len(tokens), 0)
        says = torch.split(logits.argmax(dim=-1), [len(text.tokens) - text.start for text in texts])
        parts = torch.split(hidden, [len(text.tokens) for text in texts])
        return list(says), [list(part.chunk(max(1, len(layers)), dim=-1)) for part in parts]

    def says(self, number: int) -> Tensor:
        """The target's own next token after token ``start`` of a text and after each later one."""
        self.read(())
        return self._says[number]

    def states(self, number: int, layers: Sequence[int]) -> Tensor | None:
        """The states [tokens, layers * hidden] of a text, side by side in the order of ``layers``; None for none."""
        if not layers:
            return None
        self.read(layers)
        return torch.cat([self._states[layer][number] for layer in layers], dim=-1)


def bundled_texts(target: Target) -> list[Text]:
    """The bundled conversations, cut to a few dozen tokens, in the words that ``target`` was made for."""
    wanted = "demo" if _speaks_as_the_demo(target) else "text"
    path = bundled_dir() / "calibration.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    made = [_text(target, row["messages"]) for row in rows if row["set"] == wanted]
    return [text for text in made if len(text.tokens) > text.start + 1]


def _text(target: Target, messages: list[dict[str, str]]) -> Text:
    asked, answer = messages[:-1], target.encode(messages[-1]["content"], special=False)
    plain = "\n".join(message["content"] for message in asked) + "\n"
    prompt = target.encode_chat(asked) if target.has_chat_template else target.encode(plain)
    room = min(ROOM, target.max_model_len)
    # Of a long prompt the end is kept; where a context is tiny, prompt and answer share it.
    prompt = prompt[-max(1, room - min(ANSWER, room // 2)) :]
    tokens = [*prompt, *answer[:ANSWER]][:room]
    return Text(tokens, len(prompt))


def _speaks_as_the_demo(target: Target) -> bool:
    """Whether this is the tokenizer of the bundled demo, whose models know only what their own generator writes."""
    ours, theirs = bundled_dir() / "demo" / "tokenizer.json", target.folder / "tokenizer.json"
    same = theirs.is_file() and theirs.stat().st_size == ours.stat().st_size
    return same and theirs.read_bytes() == ours.read_bytes()
