"""Drafting token by token for many sequences at once, and picking each token."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Many
from itertools import count, groupby

import torch
from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.sampling import probabilities
from specctl.runtime.sequence import Sequence

# Which of the sequences go on, by their place, and the token that each drafted last; logits [n, draft vocab] after it.
Advance = Callable[[list[int], list[int]], Tensor]


class Picker:
    """From a draft's logits to tokens: the argmax, or for sampled requests, where asked for, a draw.

    ``vocab_size``: the target's; ``sample``: draw where a request samples; ``vocabulary``: target ids of the draft's
    own vocabulary, None where the two agree but for padding.
    """

    def __init__(self, vocab_size: int, sample: bool, vocabulary: Tensor | None = None) -> None:
        self._vocab_size = vocab_size
        self._sample = sample
        self._vocabulary = vocabulary
        self._ids: list[int] | None = None if vocabulary is None else vocabulary.tolist()

    def pick(self, sequences: Many[Sequence], logits: Tensor, ahead: int) -> list[tuple[int, Tensor | None]]:
        """For each row of ``logits`` a token, ``ahead`` tokens behind what stands, and the distribution [vocab] that it
        was drawn from, if it was.
        """
        if self._vocabulary is None:
            logits = _widen(logits, self._vocab_size)
        best = logits.argmax(dim=-1).tolist()
        if self._ids is not None:
            best = [self._ids[place] for place in best]
        picked: list[tuple[int, Tensor | None]] = []
        for row, sequence in enumerate(sequences):
            sampling = sequence.request.sampling
            if not self._sample or sampling.greedy:
                picked.append((best[row], None))
                continue
            distribution = probabilities(self.spread(logits[row]), sampling)
            picked.append((sequence.randomness.pick(distribution, len(sequence.tokens) + ahead), distribution))
        return picked

    def branch(
        self, sequences: Many[Sequence], logits: Tensor, widths: Many[int], counts: Many[int], ahead: int
    ) -> list[tuple[list[tuple[int, float]], Tensor | None]]:
        """For each row of ``logits`` its candidates with their log probabilities: the ``widths[i]`` best, best first,
        or for sampled requests, where asked for, ``counts[i]`` draws without replacement and the distribution [vocab]
        they are from. What has no chance is no candidate.
        """
        if self._vocabulary is None:
            logits = _widen(logits, self._vocab_size)
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
        best = scores.topk(min(max(widths), scores.shape[-1]), dim=-1)
        drawn = self._draw_several(sequences, logits, counts, ahead) if self._sample else {}
        found: list[tuple[list[tuple[int, float]], Tensor | None]] = []
        for row, (places, logs) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
            if row in drawn:
                found.append(drawn[row])
                continue
            ids = places if self._ids is None else [self._ids[place] for place in places]
            chosen = [(token, log) for token, log in zip(ids, logs, strict=True) if log > -math.inf]
            found.append((chosen[: widths[row]], None))
        return found

    def _draw_several(
        self, sequences: Many[Sequence], logits: Tensor, counts: Many[int], ahead: int
    ) -> dict[int, tuple[list[tuple[int, float]], Tensor]]:
        """The draws of those rows whose sequences sample; the rows of one sequence stand together."""
        found: dict[int, tuple[list[tuple[int, float]], Tensor]] = {}
        for sequence, group in groupby(range(len(sequences)), key=sequences.__getitem__):
            rows = list(group)
            if sequence.request.sampling.greedy:
                continue
            laws = probabilities(self.spread(logits[rows]), sequence.request.sampling)
            for row, law in zip(rows, laws, strict=True):
                tokens = sequence.randomness.pick_several(law, len(sequence.tokens) + ahead, counts[row])
                logs = law[tokens].log().tolist()
                found[row] = (list(zip(tokens, logs, strict=True)), law)
        return found

    def spread(self, logits: Tensor) -> Tensor:
        """Rows over the draft's vocabulary, over the target's: what the draft does not know it never proposes."""
        if self._vocabulary is None:
            return _widen(logits, self._vocab_size)
        full = logits.new_full((*logits.shape[:-1], self._vocab_size), float("-inf"))
        return full.index_copy_(-1, self._vocabulary, logits)


def _widen(logits: Tensor, vocab_size: int) -> Tensor:
    """Logits over the target's vocabulary: padding rows of either model can never be drafted by the other."""
    width = logits.shape[-1]
    if width >= vocab_size:
        return logits[..., :vocab_size]
    return torch.nn.functional.pad(logits, (0, vocab_size - width), value=float("-inf"))


def draft_chain(
    sequences: Many[Sequence], counts: Many[int], logits: Tensor, advance: Advance, picker: Picker
) -> list[Draft]:
    """``counts[i]`` (at least 1) tokens for each sequence; ``logits`` [n, draft vocab] score the first of each."""
    tokens: list[list[int]] = [[] for _ in sequences]
    probs: list[list[Tensor]] = [[] for _ in sequences]
    active = list(range(len(sequences)))
    for ahead in count():
        picked = picker.pick([sequences[i] for i in active], logits, ahead)
        for i, (token, distribution) in zip(active, picked, strict=True):
            tokens[i].append(token)
            if distribution is not None:
                probs[i].append(distribution)
        active = [i for i in active if len(tokens[i]) < counts[i]]
        if not active:
            break
        logits = advance(active, [tokens[i][-1] for i in active])
    return [Draft(t, torch.stack(p) if p else None) for t, p in zip(tokens, probs, strict=True)]


def draft_filled(sequences: Many[Sequence], counts: Many[int], logits: Tensor, picker: Picker) -> list[Draft]:
    """``counts[i]`` tokens for each sequence, all scored at once: ``logits`` [sum(counts), draft vocab], one sequence
    after the other.
    """
    begins = [sum(counts[:i]) for i in range(len(counts))]
    step = 0

    def advance(active: list[int], _tokens: list[int]) -> Tensor:
        nonlocal step
        step += 1
        return logits[torch.tensor([begins[i] + step for i in active], device=logits.device)]

    return draft_chain(sequences, counts, logits[torch.tensor(begins, device=logits.device)], advance, picker)


def draft_for(
    sequences: Many[Sequence], counts: Many[int], drafting: Callable[[list[Sequence], list[int]], list[Draft]]
) -> list[Draft]:
    """``drafting`` for those sequences that may have a token; an empty draft for the others."""
    wanted = [(sequence, count) for sequence, count in zip(sequences, counts, strict=True) if count > 0]
    if not wanted:
        return [Draft([]) for _ in sequences]
    drafts = iter(drafting([s for s, _ in wanted], [c for _, c in wanted]))
    return [next(drafts) if count > 0 else Draft([]) for count in counts]
