"""Rows for training: one conversation a row, rows of like length together, and rows that only practise copying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from train.corpus.build import Document, Filter, documents

BUCKETS = (96, 128, 176, 288)
TOKENS_A_STEP = 2048
PROMPT_WEIGHT = 0.1


@dataclass
class Batch:
    """Token ids, rows × length, and how much each next-token loss counts (0 on padding)."""

    ids: Tensor
    weights: Tensor

    @property
    def tokens(self) -> int:
        """Places that are no padding, roughly: those with a weight."""
        return int((self.weights > 0).sum())


Row = tuple[list[int], list[float]]


def encode(tokenizer: Tokenizer, document: Document) -> tuple[list[int], list[int]]:
    """Ids of the prompt and of the answer, encoded apart, as at inference."""
    front = tokenizer.encode(document.prompt, add_special_tokens=False).ids
    return front, tokenizer.encode(document.answer, add_special_tokens=False).ids


def stack(rows: list[Row], length: int, pad: int) -> Batch:
    """Pad on the right."""
    ids = torch.full((len(rows), length), pad)
    weights = torch.zeros(len(rows), length)
    for i, (tokens, counts) in enumerate(rows):
        ids[i, : len(tokens)] = torch.tensor(tokens)
        weights[i, : len(counts)] = torch.tensor(counts)
    return Batch(ids, weights)


def copy_row(rng: Random, length: int, vocabulary: int, text: list[int]) -> Row:
    """Segments of 8–30 tokens, each two or three times with something between; only the repeats count in full."""
    ids: list[int] = []
    weights: list[float] = []
    while len(ids) < length:
        size = rng.randint(8, 30)
        if rng.random() < 0.5 or len(text) <= size:
            segment = [rng.randrange(3, vocabulary) for _ in range(size)]
        else:
            begin = rng.randrange(len(text) - size)
            segment = text[begin : begin + size]
        for again in range(rng.randint(2, 3)):
            filler = [rng.randrange(3, vocabulary) for _ in range(rng.randint(0, 4))]
            ids += filler + segment
            # The first token of a repeat cannot be known; the second can.
            weights += [0.0] * len(filler) + ([0.0, 0.0] + [1.0] * (size - 2) if again else [0.0] * size)
    return ids[:length], weights[:length]


class Stream:
    """Endless batches of the mixture, cleaned of bench runs."""

    def __init__(self, tokenizer: Tokenizer, cleaner: Filter, seed: int, copies: float) -> None:
        self.tokenizer, self.cleaner, self.copies = tokenizer, cleaner, copies
        self.source = documents(seed)
        self.rng = Random(seed + 1)
        self.vocabulary = tokenizer.get_vocab_size()
        self.recent: list[int] = [0] * 64
        self.waiting: dict[int, list[Row]] = {length: [] for length in BUCKETS}
        self.kept = 0

    def copy_batch(self) -> Batch:
        """Only copy rows."""
        return stack([self._copy(128) for _ in range(TOKENS_A_STEP // 128)], 128, 0)

    def _copy(self, length: int) -> Row:
        return copy_row(self.rng, length, self.vocabulary, self.recent)

    def _document(self) -> Row | None:
        front, answer = encode(self.tokenizer, next(self.source))
        ids = front + answer
        if not self.cleaner.clean(ids) or len(ids) > BUCKETS[-1]:
            return None
        self.kept += 1
        self.recent = (self.recent + ids)[-4096:]
        return ids, [PROMPT_WEIGHT] * len(front) + [1.0] * len(answer)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            row = self._document()
            if row is None:
                continue
            length = next(b for b in BUCKETS if b >= len(row[0]))
            rows = self.waiting[length]
            rows.append(row)
            while len(rows) < TOKENS_A_STEP // length and self.rng.random() < self.copies:
                rows.append(self._copy(length))
            if len(rows) >= TOKENS_A_STEP // length:
                self.waiting[length] = []
                yield stack(rows, length, 0)
