"""Load on an engine in process: requests in flight or arriving on time, and when each token came."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from specctl.bench.conversation import Follow, next_turn, not_asked, unfollowed
from specctl.bench.records import Block, Clock, Job, Record
from specctl.errors import SpecctlError

if TYPE_CHECKING:
    from specctl.runtime import Emission, Engine, Meter
    from specctl.spec.config import SpecDecodeConfig


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
        follow: Follow = unfollowed,
    ) -> None:
        self.name = name
        self.k = k
        self.spec = spec
        self._engine = engine
        self._clock = clock
        self._sleep = sleep
        self._meter = meter
        self._follow = follow
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
        loop = _Loop(self._engine, self._follow, self._clock, self._sleep)
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
    """One pass of the closed loop. The clock is read once right after each step: all its tokens came then.

    The next turn of a conversation takes the place of the one before at once; other requests wait for a free place.
    """

    def __init__(self, engine: Engine, follow: Follow, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._engine = engine
        self._follow = follow
        self._clock = clock
        self._sleep = sleep
        self._records: list[Record] = []
        self._in_flight: dict[str, Record] = {}

    def run(self, jobs: Sequence[Job], concurrency: int) -> Block:
        waiting = deque(jobs)
        start = self._clock()
        freed = start
        while waiting or self._in_flight:
            while waiting and len(self._in_flight) < concurrency and start + waiting[0].at_s <= self._clock():
                due = start + waiting[0].at_s
                # A request that comes in the middle of a step has arrived then, not when the step lets us look.
                arrived = max(due, freed) if due > start else None
                self._submit(waiting.popleft(), arrived)
            if self._in_flight:
                full = len(self._in_flight) >= concurrency
                self._step()
                freed = self._clock() if full else freed
            elif waiting:
                self._sleep(max(0.0, start + waiting[0].at_s - self._clock()))
        ends = [record.last_token_s for record in self._records if record.last_token_s is not None]
        return Block(tuple(self._records), max(ends, default=start) - start)

    def _submit(self, job: Job, arrived_s: float | None = None) -> None:
        from specctl.runtime import Request

        request = Request(f"bench-{len(self._records)}", list(job.prompt.token_ids), job.sampling)
        record = Record(job, self._clock() if arrived_s is None else arrived_s)
        self._records.append(record)
        try:
            self._engine.add(request)
        except SpecctlError as error:
            record.error = error.message
            self._records += not_asked(record)
        else:
            self._in_flight[request.id] = record

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
        following = next_turn(record, self._follow)
        if following is not None:
            self._submit(following)
        self._records += not_asked(record)

    def clear(self) -> None:
        for request_id in self._in_flight:
            self._engine.abort(request_id)
        self._in_flight.clear()
