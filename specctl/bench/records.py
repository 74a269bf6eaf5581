"""What is asked and what became of it: jobs, the records of their answers, and blocks of them that ran together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from specctl.bench.prompt_rows import Prompt

if TYPE_CHECKING:
    from specctl.runtime import SamplingParams, SpecStats, StepCosts
    from specctl.spec.config import SpecDecodeConfig

Clock = Callable[[], float]


@dataclass(frozen=True)
class Job:
    """One request to make: the prompt, its index in the workload, which repeat this is, and how to sample.

    `turn`: which question of the prompt this is, from 0; the prompt then holds the conversation up to there. `at_s`:
    seconds after the block's start at which it arrives; 0 in a closed loop, where a free place is what counts.
    """

    index: int
    repeat: int
    prompt: Prompt
    sampling: SamplingParams
    at_s: float = 0.0
    turn: int = 0

    def following(self, prompt: Prompt, turns: int = 1) -> Job:
        """The request `turns` turns later, with a seed of its own."""
        sampling, seed = self.sampling, self.sampling.seed
        own = sampling if seed is None else replace(sampling, seed=seed + turns)
        return replace(self, prompt=prompt, turn=self.turn + turns, at_s=0.0, sampling=own)

    @property
    def key(self) -> tuple[int, int, int]:
        """What is the same for the same question to two runtimes: repeat, prompt, turn."""
        return self.repeat, self.index, self.turn

    @property
    def name(self) -> str:
        """The prompt's id; later turns with their number, from 2."""
        return f"{self.prompt.id} turn {self.turn + 1}" if self.turn else self.prompt.id


@dataclass
class Record:
    """What became of one job. Times are seconds of one monotonic clock; None: it never got that far.

    `told_tokens` and `told_prompt_tokens` are a server's own counts; without them `token_ids` are counted, and where a
    server sends no ids either (`counted` False) the number is unknown. `gaps_s`: between two chunks, each of which may
    carry several tokens. `reply`: `text` without what a server sent as reasoning. `cached_tokens`: those of the prompt
    that a server's prefix cache held, where it says so.
    """

    job: Job
    submitted_s: float
    first_token_s: float | None = None
    last_token_s: float | None = None
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    stats: SpecStats | None = None
    error: str | None = None
    text: str = ""
    reply: str = ""
    told_tokens: int | None = None
    told_prompt_tokens: int | None = None
    cached_tokens: int | None = None
    counted: bool = True
    gaps_s: list[float] = field(default_factory=list)

    @property
    def num_tokens(self) -> int | None:
        """Output tokens; None where nobody said."""
        if self.told_tokens is not None:
            return self.told_tokens
        return len(self.token_ids) if self.counted else None

    @property
    def num_prompt_tokens(self) -> int | None:
        """Prompt tokens; None where nobody said."""
        if self.told_prompt_tokens is not None:
            return self.told_prompt_tokens
        return len(self.job.prompt.token_ids) or None

    @property
    def failed(self) -> bool:
        """Whether it ended in an error; a failed request enters no time and no count but `failed`."""
        return self.error is not None

    @property
    def ttft_s(self) -> float | None:
        """Seconds from submission to the first token."""
        return None if self.first_token_s is None else self.first_token_s - self.submitted_s

    @property
    def e2e_s(self) -> float | None:
        """Seconds from submission to the last token."""
        return None if self.last_token_s is None else self.last_token_s - self.submitted_s

    @property
    def tpot_s(self) -> float | None:
        """Seconds per output token after the first, as vLLM's client counts; None for a single token."""
        count = self.num_tokens
        if self.first_token_s is None or self.last_token_s is None or count is None or count < 2:
            return None
        return (self.last_token_s - self.first_token_s) / (count - 1)

    def take(self, token_ids: list[int], now_s: float) -> None:
        """Note tokens that came at `now_s`."""
        if token_ids:
            self.chunk(now_s)
            self.token_ids.extend(token_ids)

    def chunk(self, now_s: float) -> None:
        """Note that a piece of the answer came at `now_s`."""
        if self.last_token_s is None:
            self.first_token_s = now_s
        else:
            self.gaps_s.append(now_s - self.last_token_s)
        self.last_token_s = now_s


@dataclass(frozen=True)
class Block:
    """Requests that ran together, and the seconds from the first submission to the last token.

    `stats`: counters of the whole block, where the runtime tells them for all requests together only. `notes`: what
    was odd about them. `draft_s` and `verify_s`: seconds spent drafting and in the target's forwards, where known.
    `costs`: what the networks took in the steps of one stream, where that was metered.
    """

    records: tuple[Record, ...]
    duration_s: float
    stats: SpecStats | None = None
    notes: tuple[str, ...] = ()
    draft_s: float | None = None
    verify_s: float | None = None
    costs: StepCosts | None = None


class Runner(Protocol):
    """Something that can be timed: an engine with one setting, or another runtime on the same weights.

    `name` and `k` are those of the report; `k` and `spec` are None where nothing is drafted or nothing known.
    `max_concurrency` None: no bound.
    """

    name: str
    k: int | None
    spec: SpecDecodeConfig | None
    max_concurrency: int | None

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        """Make all requests, `concurrency` of them in flight; a request that fails is a record, not an exception."""
        ...
