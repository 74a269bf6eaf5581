"""Prompts of a wanted length: real text in front of each question, or random tokens with a warning.

A draft's acceptance falls with the context's length, for some heads to nothing (EAGLE-3 heads trained on 2048 tokens),
so one figure from short prompts is no verdict. Random tokens are no text: what is accepted on them does not carry over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from specctl.bench.prompt_rows import Prompt
from specctl.bench.workloads import Workload, as_text
from specctl.errors import UsageError

Count = Callable[[Prompt], int]
"""Tokens of a prompt as the target sees it."""

WORDS_A_TOKEN = 0.75  # of English text; only where no tokenizer is at hand
LEAD = "Some notes, which may or may not matter:\n"


@dataclass(frozen=True)
class Lengths:
    """`tokens`: the lengths wanted, each prompt in each of them. `random_tokens`: ids without meaning."""

    tokens: tuple[int, ...]
    random_tokens: bool = False


def estimated(prompt: Prompt) -> int:
    """About how many tokens a prompt has, by its words."""
    return round(len(as_text(prompt).split()) / WORDS_A_TOKEN)


def stretched(workload: Workload, lengths: Lengths, count: Count, seed: int) -> Workload:
    """Every prompt at every length, filled with text of the other prompts; neighbours have different lengths.

    A prompt that is longer already stays as it is. Raises `UsageError` where there is no text to fill with.
    """
    texts = [as_text(prompt) for prompt in workload.prompts]
    if len(texts) < 2:
        raise UsageError("--input-len fills prompts with the text of others; there is only one prompt")
    order = random.Random(seed)
    found = []
    for place, prompt in enumerate(workload.prompts):
        others = texts[:place] + texts[place + 1 :]
        order.shuffle(others)
        found += [_filled(prompt, length, others, count) for length in lengths.tokens]
    return replace(workload, prompts=tuple(found))


def _filled(prompt: Prompt, length: int, others: Sequence[str], count: Count) -> Prompt:
    """The prompt with as many words of `others` in front as make `length` tokens (at most, and as near as words go)."""
    if count(prompt) >= length:
        return replace(prompt, id=f"{prompt.id}@{length}")
    words = "\n\n".join(others).split(" ")
    words *= 1 + 4 * length // max(1, len(words))

    def with_words(number: int) -> Prompt:
        last = prompt.messages[-1]
        content = f"{LEAD}{' '.join(words[:number])}\n\n{last['content']}"
        return replace(
            prompt, id=f"{prompt.id}@{length}", messages=(*prompt.messages[:-1], last | {"content": content})
        )

    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(with_words(middle)) <= length else (low, middle - 1)
    return with_words(low) if low else replace(prompt, id=f"{prompt.id}@{length}")


def random_prompts(number: int, lengths: Sequence[int], vocab_size: int, seed: int) -> Workload:
    """`number` prompts of random token ids, the lengths in turn."""
    draw = random.Random(f"random-tokens/{seed}")
    prompts = []
    for place in range(number):
        length = lengths[place % len(lengths)]
        ids = tuple(draw.randrange(vocab_size) for _ in range(length))
        prompts.append(Prompt(f"random-{place}@{length}", "random", ({"role": "user", "content": ""},), ids))
    note = "the prompts are random tokens: times are real, acceptance does not carry over to real text"
    return Workload("random tokens", tuple(prompts), random_text=True, notes=(note,))
