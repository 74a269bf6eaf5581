"""Load on an engine in process: requests in flight or arriving on time, and when each token came."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from specctl.bench.prompt_rows import Prompt
from specctl.errors import SpecctlError

if TYPE_CHECKING:
    from specctl.runtime import Emission, Engine, Meter, SamplingParams, SpecStats, StepCosts
    from specctl.spec.config import SpecDecodeConfig

Clock = Callable[[], float]


@dataclass(frozen=True)
class Job:
    """One request to make: the prompt, its index in the workload, which repeat this is, and how to sample.

    `at_s`: seconds after the block's start at which it arrives; 0 in a closed loop, where a free place is what counts.
    """

    index: int
    repeat: int
    prompt: Prompt
    sampling: SamplingParams
    at_s: float = 0.0


@dataclass
class Record:
    """What became of one job. Times are seconds of one monotonic clock; None: it never got that far.

    `told_tokens` and `told_prompt_tokens` are a server's own counts; without them `token_ids` are counted, and where a
    server sends no ids either (`counted` False) the number is unknown. `gaps_s`: between two chunks, each of which may
    carry several tokens.
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
    told_tokens: int | None = None
    told_prompt_tokens: int | None = None
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


class EngineRunner:
    """The bundled engine with one setting."""

    max_concurrency: int | None = None

    def __init__(
        self,
        name: str,
        k: int | None,
        spec: SpecDecodeConfig | None,
        engine: Engine,
        clock: Clock = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
        meter: Meter | None = None,
    ) -> None:
        self.name = name
        self.k = k
        self.spec = spec
        self._engine = engine
        self._clock = clock
        self._sleep = sleep
        self._meter = meter
        self._served: tuple[int, int] | None = None
        if meter is not None:
            meter.watch(engine)

    @property
    def lossless(self) -> bool:
        """Whether the answers follow the target's distribution."""
        return self._engine.lossless

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the engine does otherwise than the one whose setting it runs."""
        return self._engine.notes

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        """See `Runner.run`. Whatever interrupts it, the engine is left empty. A new repeat or level, which sends the
        same prompts again, begins without what earlier ones left behind.
        """
        serving = (jobs[0].repeat if jobs else 0, concurrency)
        if serving != self._served:
            self._engine.forget()
            self._served = serving
        loop = _Loop(self._engine, self._clock, self._sleep)
        times = self._engine.times
        draft_s, verify_s = times.draft_s, times.verify_s
        if self._meter is not None:
            self._meter.reset()
        try:
            block = loop.run(jobs, concurrency)
        finally:
            loop.clear()
        if self._meter is not None and concurrency == 1:
            block = replace(block, costs=self._meter.costs)
        if self.spec is None:
            return block
        return replace(block, draft_s=times.draft_s - draft_s, verify_s=times.verify_s - verify_s)

    def memory(self) -> dict[str, int | None]:
        """Bytes of its KV cache and of its draft."""
        from specctl.runtime import footprint

        return footprint(self._engine)


class _Loop:
    """One pass of the closed loop. The clock is read once right after each step: all its tokens came then."""

    def __init__(self, engine: Engine, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._engine = engine
        self._clock = clock
        self._sleep = sleep
        self._in_flight: dict[str, Record] = {}

    def run(self, jobs: Sequence[Job], concurrency: int) -> Block:
        waiting = deque(jobs)
        records: list[Record] = []
        start = self._clock()
        freed = start
        while waiting or self._in_flight:
            while waiting and len(self._in_flight) < concurrency and start + waiting[0].at_s <= self._clock():
                due = start + waiting[0].at_s
                # A request that comes in the middle of a step has arrived then, not when the step lets us look.
                arrived = max(due, freed) if due > start else None
                records.append(self._submit(waiting.popleft(), len(records), arrived))
            if self._in_flight:
                full = len(self._in_flight) >= concurrency
                self._step()
                freed = self._clock() if full else freed
            elif waiting:
                self._sleep(max(0.0, start + waiting[0].at_s - self._clock()))
        ends = [record.last_token_s for record in records if record.last_token_s is not None]
        return Block(tuple(records), max(ends, default=start) - start)

    def _submit(self, job: Job, number: int, arrived_s: float | None) -> Record:
        from specctl.runtime import Request

        request = Request(f"bench-{number}", list(job.prompt.token_ids), job.sampling)
        record = Record(job, self._clock() if arrived_s is None else arrived_s)
        try:
            self._engine.add(request)
        except SpecctlError as error:
            record.error = error.message
        else:
            self._in_flight[request.id] = record
        return record

    def _step(self) -> None:
        if not self._engine.has_work():
            raise RuntimeError(f"the engine has no work, but {len(self._in_flight)} requests never ended")
        emissions = list(self._engine.step())
        now = self._clock()
        for emission in emissions:
            self._take(emission, now)

    def _take(self, emission: Emission, now_s: float) -> None:
        record = self._in_flight[emission.request_id]
        record.take(emission.token_ids, now_s)
        if emission.finish_reason is None:
            return
        record.finish_reason = emission.finish_reason
        record.stats = emission.stats
        if emission.finish_reason == "error":
            record.error = emission.error or "the engine gave no reason"
        del self._in_flight[emission.request_id]

    def clear(self) -> None:
        for request_id in self._in_flight:
            self._engine.abort(request_id)
        self._in_flight.clear()
