"""One whole bench: load the target, make the runners, measure, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specctl.bench import workloads
from specctl.bench.candidates import BASELINE, MAX_K, named
from specctl.bench.compare import TieRule
from specctl.bench.load import EngineRunner, Runner
from specctl.bench.peers import PeerSetup, make_peers
from specctl.bench.results import Report, Setup, build_report
from specctl.bench.session import Measured, Progress, Schedule, measure, short_jobs
from specctl.bench.threads import TRIAL_TOKENS, fastest, thread_counts
from specctl.bench.verdict import label
from specctl.bench.workloads import Workload
from specctl.errors import UsageError
from specctl.spec.config import SpecDecodeConfig

if TYPE_CHECKING:
    from specctl.runtime import EngineOptions, SamplingParams


@dataclass(frozen=True)
class Order:
    """What the user asked for, read and checked as far as that goes without loading a model."""

    target: str
    specs: Sequence[SpecDecodeConfig]
    workload: Workload
    concurrency: tuple[int, ...]
    repeats: int
    warmup: int
    sampling: dict[str, Any]
    seed: int
    peers: Sequence[str] = ()
    peer_k: int = 4
    peer_draft: str | None = None
    check_outputs: bool = True
    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        prompts = len(self.workload.prompts)
        if max(self.concurrency) > prompts:
            raise UsageError(
                f"{prompts} prompts cannot keep {max(self.concurrency)} requests in flight",
                help="ask for more with --num-prompts, or for a lower --concurrency",
            )


@dataclass(frozen=True)
class Outcome:
    """The report, and what belongs beside it.

    `failures`: why requests failed, one line each, without repeats. `notes`: where the runtime does otherwise than the
    engine whose setting was measured.
    """

    report: Report
    interrupted: bool
    failures: list[str]
    notes: list[str]


def run(order: Order, progress: Progress) -> Outcome:
    """Do what `order` says. Raises `SpecctlError` for a model, draft or option that cannot be used."""
    from specctl.runtime import environment, load_target, near_tie_margin, set_threads, top_margin

    begun = time.perf_counter()
    if order.threads is not None:
        set_threads(order.threads)
    sampling = _sampling(order.sampling)
    target = load_target(order.target, device=order.device, dtype=order.dtype)
    workload = workloads.encode(order.workload, target)
    runners = _runners(order, target, workload)
    schedule = Schedule(order.concurrency, order.repeats, order.warmup, order.seed, sampling)
    notes = _notes(runners)
    most = environment(target)["threads"]
    if order.threads is None and target.device == "cpu" and most > 1:
        notes += _choose_threads(most, runners[0], schedule, workload)
    facts = environment(target)
    if order.time_limit_s is not None:
        schedule = replace(schedule, time_limit_s=order.time_limit_s - (time.perf_counter() - begun))
    measured = measure(schedule, workload, runners, progress)
    ties = TieRule(lambda prefix: top_margin(target, list(prefix)), near_tie_margin(target))
    setup = Setup(order.target, target.eos_token_ids, schedule, workload, runners)
    report = build_report(setup, measured, facts, ties if order.check_outputs else None)
    return Outcome(report, measured.interrupted, _failures(measured, runners), notes)


def shown(order: Order, progress: AbstractContextManager[Progress]) -> Outcome:
    """`run` with a progress display that is taken down whatever happens."""
    with progress as display:
        return run(order, display)


def _sampling(wanted: dict[str, Any]) -> SamplingParams:
    from specctl.runtime import SamplingParams

    try:
        return SamplingParams(**wanted)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _runners(order: Order, target: Any, workload: Workload) -> list[Runner]:
    """The baseline, the candidates, the peers."""
    from specctl.runtime import make_engine

    options = _options(order, target, workload)
    engines = [(spec, make_engine(target, spec, options)) for spec in order.specs]
    found: list[Runner] = [EngineRunner(BASELINE, None, None, make_engine(target, None, options))]
    known = named([(spec, engine.num_speculative_tokens) for spec, engine in engines])
    for candidate, (_, engine) in zip(known, engines, strict=True):
        found.append(EngineRunner(candidate.name, candidate.k, candidate.spec, engine))
    peers = PeerSetup(order.target, target.dtype, target.device, target.eos_token_ids, order.peer_k, order.peer_draft)
    return found + make_peers(order.peers, peers)


def _options(order: Order, target: Any, workload: Workload) -> EngineOptions:
    """Slots for the highest level, each long enough for the longest request and a whole draft, so none is cut short."""
    from specctl.runtime import EngineOptions

    level = max(order.concurrency)
    longest = max(len(prompt.token_ids) for prompt in workload.prompts)
    widest = max((spec.num_speculative_tokens or MAX_K for spec in order.specs), default=0) + 1
    length = min(target.max_model_len, longest + order.sampling["max_tokens"] + widest)
    batch = max(EngineOptions().max_num_batched_tokens, level * widest)
    return EngineOptions(max_num_seqs=level, max_model_len=length, max_num_batched_tokens=batch, seed=order.seed)


def _notes(runners: Sequence[Runner]) -> list[str]:
    engines = [runner for runner in runners if isinstance(runner, EngineRunner)]
    return [f"{label(runner.name, runner.k)}: {note}" for runner in engines for note in runner.notes]


def _choose_threads(most: int, runner: Runner, schedule: Schedule, workload: Workload) -> list[str]:
    """Set the number of threads by a short trial; what to tell the user about it."""
    from specctl.runtime import set_threads

    counts = thread_counts(most)
    level = max(schedule.concurrency)
    chosen = fastest(runner, short_jobs(schedule, workload, level, TRIAL_TOKENS), level, counts, set_threads)
    if chosen == most:
        return []
    return [f"measured with {chosen} of {most} CPU threads, the fastest in a short trial; --threads sets it"]


def _failures(measured: Measured, runners: Sequence[Runner]) -> list[str]:
    found = {
        f"request {record.job.prompt.id} failed in {runners[place].name} at concurrency {level}: {record.error}": None
        for (place, level), blocks in measured.blocks.items()
        for block in blocks
        for record in block.records
        if record.failed
    }
    return list(found)
