"""One whole bench: load the target, make the runners, measure, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from specctl.bench import workloads
from specctl.bench.candidates import BASELINE, MAX_K, named
from specctl.bench.conversation import follow_with, longest
from specctl.bench.journal import FileJournal, run_key
from specctl.bench.lengths import random_prompts, stretched
from specctl.bench.load import EngineRunner
from specctl.bench.order import Order, Outcome
from specctl.bench.outputs import TieRule
from specctl.bench.peers import PeerSetup, make_peers
from specctl.bench.pilot import repeats_needed
from specctl.bench.records import Record, Runner
from specctl.bench.results import Setup, build_report
from specctl.bench.session import Measured, Progress, Schedule, measure, short_jobs
from specctl.bench.threads import TRIAL_TOKENS, fastest, thread_counts
from specctl.bench.verdict import label
from specctl.bench.workloads import Workload
from specctl.errors import SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.runtime import Engine, EngineOptions, SamplingParams
    from specctl.spec.config import SpecDecodeConfig


def run(order: Order, progress: Progress) -> Outcome:
    """Do what `order` says. Raises `SpecctlError` for a model, draft, server or option that cannot be used."""
    if order.servers is not None:
        from specctl.bench.remote import run_servers

        return run_servers(order, order.servers, progress)
    return _run_here(order, progress)


def _run_here(order: Order, progress: Progress) -> Outcome:
    from specctl.runtime import environment, load_target, near_tie_margin, set_threads, top_margin

    begun = time.perf_counter()
    if order.threads is not None:
        set_threads(order.threads)
    schedule = schedule_of(order)
    target = load_target(order.target, device=order.device, dtype=order.dtype)
    workload = workloads.encode(_lengthened(order, target), target)
    runners, left_out = _runners(order, target, workload)
    notes = left_out + _notes(runners)
    most = environment(target)["threads"]
    if order.threads is None and target.device == "cpu" and most > 1:
        notes += _choose_threads(most, runners[0], schedule, workload)
    facts = environment(target)
    if order.time_limit_s is not None:
        schedule = replace(schedule, time_limit_s=order.time_limit_s - (time.perf_counter() - begun))
    measured = measured_with(order, schedule, workload, runners, progress)

    def margin(record: Record, place: int) -> float:
        return top_margin(target, [*record.job.prompt.token_ids, *record.token_ids[:place]])

    ties = TieRule(margin, near_tie_margin(target))
    memory = {place: runner.memory() for place, runner in enumerate(runners) if isinstance(runner, EngineRunner)}
    setup = Setup(order.target, target.eos_token_ids, schedule, workload, runners, order.promises, memory=memory)
    return outcome_of(setup, measured, facts, ties if order.check_outputs else None, notes)


def schedule_of(order: Order) -> Schedule:
    """What to measure and how often. Raises `UsageError` for sampling options that are none."""
    per_level = None if order.num_prompts is None else order.prompts_a_level
    return Schedule(
        order.concurrency,
        order.repeats,
        order.warmup,
        order.seed,
        _sampling(order.sampling),
        order.time_limit_s,
        per_level,
        order.arrivals,
        order.precision,
        order.capped,
    )


def _lengthened(order: Order, target: Any) -> Workload:
    """The workload at the wanted lengths of prompts."""
    lengths, work = order.lengths, order.workload
    if lengths is None:
        return work
    if lengths.random_tokens:
        return random_prompts(len(work.prompts) * len(lengths.tokens), lengths.tokens, target.vocab_size, order.seed)
    return stretched(work, lengths, lambda prompt: len(workloads.tokens_of(prompt, target)), order.seed)


def measured_with(
    order: Order, schedule: Schedule, workload: Workload, runners: Sequence[Runner], progress: Progress
) -> Measured:
    """`measure`, with the journal and the pilot that the order asks for."""
    needed: Callable[[Measured], int] | None = None
    if order.precision is not None:
        needed = partial(repeats_needed, precision=order.precision, seed=order.seed)
    if order.journal is None:
        return measure(schedule, workload, runners, progress, needed=needed)
    with FileJournal(order.journal, run_key(order, schedule, workload, runners)) as journal:
        return measure(schedule, workload, runners, progress, journal=journal, needed=needed)


def outcome_of(
    setup: Setup, measured: Measured, facts: dict[str, Any], ties: TieRule | None, notes: list[str]
) -> Outcome:
    """The report and what stands beside it."""
    report, kept = build_report(setup, measured, facts, ties)
    report["notes"] += notes
    lines = {
        f"request {row['request']} failed in {row['run']} at concurrency {row['concurrency']}: {row['error']}": None
        for row in report["failures"]
    }
    return Outcome(report, measured.interrupted, list(lines), notes, kept)


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


def _runners(order: Order, target: Any, workload: Workload) -> tuple[list[Runner], list[str]]:
    """The baseline, the candidates, the peers; and what to tell of candidates that are left out."""
    from specctl.runtime import Meter, make_engine

    options = _options(order, target, workload)
    engines, left_out = _engines(order, target, options)
    meter, follow = Meter(), follow_with(target)

    def runner(name: str, k: int | None, spec: SpecDecodeConfig | None, engine: Engine) -> EngineRunner:
        return EngineRunner(name, k, spec, engine, meter=meter, follow=follow)

    known = named([(spec, engine.num_speculative_tokens) for spec, engine in engines])
    found: list[Runner] = [runner(BASELINE, None, None, make_engine(target, None, options))]
    for each, (_, engine) in zip(known, engines, strict=True):
        found.append(runner(each.name, each.k, each.spec, engine))
    eos = target.eos_token_ids
    peers = PeerSetup(order.target, target.dtype, target.device, eos, order.peer_k, order.peer_draft, follow)
    return found + make_peers(order.peers, peers), left_out


def _engines(
    order: Order, target: Any, options: EngineOptions
) -> tuple[list[tuple[SpecDecodeConfig, Engine]], list[str]]:
    from specctl.runtime import make_engine

    engines, left_out = [], []
    for spec in order.specs:
        try:
            engines.append((spec, make_engine(target, spec, options)))
        except SpecctlError as error:
            if not order.lenient:
                raise
            left_out.append(f"{label(spec.method.name, spec.num_speculative_tokens)} is left out: {error.message}")
    return engines, left_out


def _options(order: Order, target: Any, workload: Workload) -> EngineOptions:
    """Slots for the highest level, each long enough for the longest request and a whole draft, so none is cut short."""
    from specctl.runtime import EngineOptions

    level = max(order.concurrency)
    widest = max((spec.num_speculative_tokens or MAX_K for spec in order.specs), default=0) + 1
    length = min(target.max_model_len, longest(workload.prompts, target, order.sampling["max_tokens"]) + widest)
    batch = max(EngineOptions().max_num_batched_tokens, level * widest)
    return EngineOptions(
        max_num_seqs=level,
        max_model_len=length,
        max_num_batched_tokens=batch,
        seed=order.seed,
        measured_length=order.measured_length,
        draft_check=order.draft_check,
    )


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
