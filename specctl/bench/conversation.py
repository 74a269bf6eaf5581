"""Prompts with several questions: each is asked with the model's own answers to the earlier ones in the history.

A question of a conversation is a request of its own, with its own times and counts. It is sent as soon as the answer
before it is there, in the place that this one held, so the level of concurrency stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Job, Record
from specctl.bench.workloads import Coder, tokens_of
from specctl.errors import SpecctlError

if TYPE_CHECKING:
    from specctl.bench.workloads import Workload

Follow = Callable[[Record], Prompt]
"""The prompt of the turn behind a finished one. Raises `SpecctlError` where the conversation cannot go on."""

# An answer read back from its text may be a few tokens longer than it was.
SLACK = 16


def follow_with(target: Coder) -> Follow:
    """Turns of a model in process: the answer as text, and the whole conversation through the tokenizer again."""

    def follow(record: Record) -> Prompt:
        prompt = record.job.prompt.after(target.decode(record.token_ids))
        return replace(prompt, token_ids=tuple(tokens_of(prompt, target)))

    return follow


def unfollowed(record: Record) -> Prompt:
    """For runners that were not told how to go on."""
    raise SpecctlError(f"{record.job.name} has a further turn, and this runtime takes single questions")


def follow_text(record: Record) -> Prompt:
    """Turns of a server: the answer as it was sent."""
    return record.job.prompt.after(record.reply)


def next_turn(record: Record, follow: Follow) -> Job | None:
    """The request behind a finished one; None where the conversation is over or cannot go on: see `not_asked`."""
    job = record.job
    if record.failed or not job.prompt.turns:
        return None
    try:
        prompt = follow(record)
    except SpecctlError as error:
        record.error = f"its answer cannot be followed up: {error.message}"
        return None
    return job.following(prompt)


def not_asked(record: Record) -> list[Record]:
    """The turns that a failed one leaves without a history: they fail, too, and say why."""
    prompt, found = record.job.prompt, []
    if not record.failed:
        return []
    for place in range(1, len(prompt.turns) + 1):
        job = record.job.following(replace(prompt, turns=prompt.turns[place:]), place)
        error = f"not asked, since turn {record.job.turn + 1} failed"
        found.append(Record(job, record.submitted_s, error=error))
    return found


def shortened(workload: Workload, most: int | None) -> Workload:
    """At most `most` turns of every prompt; None: all of them."""
    if most is None:
        return workload
    return replace(workload, prompts=tuple(replace(each, turns=each.turns[: most - 1]) for each in workload.prompts))


def num_requests(prompts: Iterable[Prompt]) -> int:
    """Requests that the prompts make, each turn one."""
    return sum(1 + len(prompt.turns) for prompt in prompts)


def longest(prompts: Sequence[Prompt], target: Coder, max_tokens: int) -> int:
    """Tokens of the longest conversation, answers of `max_tokens` included."""
    return max(_length(prompt, target, max_tokens) for prompt in prompts)


def _length(prompt: Prompt, target: Coder, max_tokens: int) -> int:
    if not prompt.turns:
        return len(prompt.token_ids) + max_tokens
    whole = prompt
    while whole.turns:
        whole = whole.after("")
    return len(tokens_of(whole, target)) + (1 + len(prompt.turns)) * (max_tokens + SLACK)
