"""Stand-ins for the bench's surroundings: a clock that is told the time, an engine that plays a script."""

from __future__ import annotations

from collections.abc import Sequence

from specctl.bench.compare import Comparison
from specctl.bench.outputs import Outputs
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Block, Job, Record
from specctl.bench.workloads import Workload
from specctl.errors import SpecctlError
from specctl.runtime import Emission, Request, SamplingParams, SpecStats
from specctl.runtime.stats import StepTimes


class Clock:
    """Seconds that pass only when someone lets them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class ScriptedEngine:
    """Plays `script[prompt[0]]`, a list of token chunks, one chunk a step; a step takes `step_s` for all that run.

    A chunk of None is a step without tokens (prefill). Prompts that begin with `refused` are turned away by `add`,
    those with `broken` end in an error.
    """

    def __init__(
        self,
        clock: Clock,
        script: dict[int, list[list[int] | None]],
        step_s: float = 0.01,
        stats: SpecStats | None = None,
    ) -> None:
        self.clock = clock
        self.script = script
        self.step_s = step_s
        self.stats = stats
        self.times = StepTimes()
        self.forgotten = 0
        self.refused = -1
        self.broken = -1
        self.interrupt_at: int | None = None
        self.running: dict[str, list[list[int] | None]] = {}
        self.broken_ids: set[str] = set()
        self.peak = 0
        self.steps = 0
        self.aborted: list[str] = []

    def forget(self) -> None:
        self.forgotten += 1

    def add(self, request: Request) -> None:
        first = request.prompt_token_ids[0]
        if first == self.refused:
            raise SpecctlError("the prompt does not fit")
        if first == self.broken:
            self.broken_ids.add(request.id)
        assert request.id not in self.running
        self.running[request.id] = list(self.script[first])
        self.peak = max(self.peak, len(self.running))

    def abort(self, request_id: str) -> bool:
        self.aborted.append(request_id)
        return self.running.pop(request_id, None) is not None

    def has_work(self) -> bool:
        return bool(self.running)

    def step(self) -> list[Emission]:
        if self.steps == self.interrupt_at:
            raise KeyboardInterrupt
        self.steps += 1
        self.clock.now += self.step_s
        found = []
        for name, chunks in list(self.running.items()):
            tokens = chunks.pop(0)
            if name in self.broken_ids:
                found.append(Emission(name, [], "", finish_reason="error", error="the weights melted"))
            elif not chunks:
                found.append(Emission(name, tokens or [], "", finish_reason="stop", stats=self.stats or SpecStats()))
            elif tokens is not None:
                found.append(Emission(name, tokens, ""))
                continue
            else:
                continue
            del self.running[name]
        return found


def job(index: int = 0, repeat: int = 0, category: str = "all", prompt: Sequence[int] = (1,)) -> Job:
    """A greedy job whose prompt is called `p<index>`."""
    return Job(index, repeat, Prompt(f"p{index}", category, (), tuple(prompt)), SamplingParams())


def record(
    index: int = 0,
    repeat: int = 0,
    *,
    tokens: Sequence[int] = (7, 8, 9),
    tpot_s: float = 0.01,
    category: str = "all",
    stats: SpecStats | None = None,
    error: str | None = None,
) -> Record:
    """A finished record that took 0.1 s to its first token and `tpot_s` for each further one."""
    last = 0.1 + tpot_s * (len(tokens) - 1)
    done = Record(job(index, repeat, category), 0.0, 0.1, last, list(tokens), "stop", stats)
    done.error = error
    return done


def block(*records: Record, duration_s: float = 1.0) -> Block:
    """A block of these records."""
    return Block(tuple(records), duration_s)


def workload(*categories: str) -> Workload:
    """One encoded prompt for each category named, `p0`, `p1`, …; prompt i is the token i."""
    prompts = [Prompt(f"p{i}", name, ({"role": "user", "content": "x"},), (i,)) for i, name in enumerate(categories)]
    return Workload("bundled", tuple(prompts))


def compared(
    name: str = "ngram",
    level: int = 1,
    speedup: float = 1.2,
    ci: list[float] | None = None,
    ratio: float | None = 1.1,
    k: int | None = 4,
    outputs: Outputs | None = None,
) -> Comparison:
    """A comparison with these figures; nothing else was measured."""
    return Comparison(
        baseline="baseline",
        candidate=name,
        k=k,
        concurrency=level,
        tpot_speedup=speedup,
        tpot_speedup_ci=ci,
        throughput_ratio=ratio,
        break_even_acceptance_length=None,
        by_category={},
        outputs=outputs or Outputs("identical"),
        by_context={},
        by_turn={},
        confidence=0.95,
        break_even_basis=None,
        cost_per_accepted_token_ms=None,
        baseline_tpot_ms=None,
        pairs=8,
    )
