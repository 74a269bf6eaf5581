"""The draft vocabulary: the tokens that a target uses most in its own answers."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from train.heads.batches import Recording


def common_tokens(recording: Recording, count: int) -> Tensor:
    """The `count` most frequent ids of the training answers, ascending (fewer where fewer were used)."""
    seen = _seen(recording)
    return torch.tensor(sorted(token for token, _ in seen.most_common(count)))


def covered(recording: Recording, vocabulary: Tensor) -> float:
    """The share of the training answers' tokens that a vocabulary holds."""
    seen, held = _seen(recording), set(vocabulary.tolist())
    return sum(n for token, n in seen.items() if token in held) / seen.total()


def _seen(recording: Recording) -> Counter[int]:
    seen: Counter[int] = Counter()
    for place in recording.train:
        answer = recording.answers[place]
        seen.update(answer.ids[answer.begin :])
    return seen
