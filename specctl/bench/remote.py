"""A bench of running servers: one alone, one against another, or several started one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from specctl.bench.candidates import BASELINE, named
from specctl.bench.endpoint import EndpointRunner
from specctl.bench.journal import journal_at, plan_key
from specctl.bench.lengths import estimated, stretched
from specctl.bench.order import Order, Outcome, Servers
from specctl.bench.outputs import TieRule
from specctl.bench.records import Block, Record, Runner
from specctl.bench.results import Setup
from specctl.bench.run import measured_with, outcome_of, schedule_of
from specctl.bench.server import Endpoint, Server
from specctl.bench.session import Measured, Progress, measure
from specctl.bench.stream import CountTokens
from specctl.bench.workloads import Workload
from specctl.errors import MissingError, UsageError
from specctl.spec.config import SpecDecodeConfig

SERVER = "server"


def run_servers(order: Order, servers: Servers, progress: Progress) -> Outcome:
    """Measure what `servers` names. Raises `MissingError` where nothing answers, `UsageError` for what does not go."""
    tokenize = None if servers.tokenizer is None else tokenizer(servers.tokenizer)
    workload = _lengthened(order, tokenize)
    if servers.start is not None:
        return _one_after_the_other(order, servers, workload, tokenize, progress)
    assert servers.candidate is not None
    with ExitStack() as open_ones:
        found = []
        if servers.baseline is not None:
            found.append(_runner(BASELINE, None, None, servers.baseline, tokenize, open_ones))
        name, k, spec = _described(order.specs)
        found.append(_runner(name, k, spec, servers.candidate, tokenize, open_ones))
        schedule = schedule_of(order)
        if servers.baseline is None:
            schedule = replace(schedule, alone=True)
        measured = measured_with(order, schedule, workload, found, progress)
        compared = servers.baseline is not None
        setup = Setup(found[-1].server.model, frozenset(), schedule, workload, found, order.promises, compared)
        ties = _ties(order, servers, found[0]) if compared else None
        return outcome_of(setup, measured, _environment(found), ties, _notes(found))


def _described(specs: Sequence[SpecDecodeConfig]) -> tuple[str, int | None, SpecDecodeConfig | None]:
    """What the running server is said to run: its run's name, k and setting."""
    if len(specs) > 1:
        raise UsageError(
            f"{len(specs)} settings are given, and one server", help="give the one that the server was started with"
        )
    if not specs:
        return SERVER, None, None
    return specs[0].method.name, specs[0].num_speculative_tokens, specs[0]


def _runner(
    name: str,
    k: int | None,
    spec: SpecDecodeConfig | None,
    endpoint: Endpoint,
    tokenize: CountTokens | None,
    open_ones: ExitStack,
) -> EndpointRunner:
    runner = EndpointRunner(name, k, spec, endpoint, tokenize)
    open_ones.callback(runner.close)
    return runner


def _one_after_the_other(
    order: Order, servers: Servers, workload: Workload, tokenize: CountTokens | None, progress: Progress
) -> Outcome:
    """Start, measure and stop plain decoding, then every candidate; the same prompts, one report.

    Turns cannot be taken with servers that do not run at the same time, so drift is not cancelled: the notes say so.
    """
    assert servers.start is not None
    schedule = replace(schedule_of(order), time_limit_s=None)
    known = named([(spec, spec.num_speculative_tokens) for spec in order.specs])
    plan: list[tuple[str, int | None, SpecDecodeConfig | None]] = [(BASELINE, None, None)]
    plan += [(each.name, each.k, each.spec) for each in known]
    whole, found = Measured(), []
    key = plan_key(order, schedule, workload, plan)
    repeats = schedule.repeats
    shared = _Shared(progress, len(plan))
    for place, (name, k, spec) in enumerate(plan):
        with servers.start(spec) as endpoint, ExitStack() as open_ones:
            runner = _runner(name, k, spec, endpoint, tokenize, open_ones)
            found.append(runner)
            with journal_at(order.journal, key, place) as journal:
                part = measure(schedule, workload, [runner], shared, journal=journal)
        repeats = min(repeats, part.repeats)
        whole.blocks |= {(place, level): blocks for (_, level), blocks in part.blocks.items()}
        if part.interrupted:
            whole.interrupted = True
            break
    whole.repeats = repeats
    setup = Setup(order.target, frozenset(), schedule, workload, found, order.promises)
    notes = ["the servers ran one after the other, so slow drift of the machine stands in the comparison"]
    ties = TieRule(_no_margin, servers.near_tie, may_truncate=True)
    return outcome_of(setup, whole, _environment(found), ties if order.check_outputs else None, notes + _notes(found))


class _Shared:
    """One progress display for several measurements of equal size."""

    def __init__(self, progress: Progress, parts: int) -> None:
        self._progress, self._parts = progress, parts

    def start(self, total: int) -> None:
        """See `session.Progress`."""
        self._progress.start(total * self._parts)

    def advance(self, done: int, doing: str) -> None:
        """See `session.Progress`."""
        self._progress.advance(done, doing)

    def seen(self, runner: Runner, concurrency: int, block: Block) -> None:
        """See `session.Progress`."""
        self._progress.seen(runner, concurrency, block)


def _no_margin(record: Record, place: int) -> float | None:  # noqa: ARG001 (a rule's form)
    """The server that could say has stopped."""
    return None


def _ties(order: Order, servers: Servers, baseline: EndpointRunner) -> TieRule | None:
    return TieRule(baseline.margin, servers.near_tie, may_truncate=True) if order.check_outputs else None


def _environment(found: Sequence[EndpointRunner]) -> dict[str, Any]:
    """The facts that a report needs, as far as a server tells them."""
    from importlib import metadata

    last = found[-1].server
    facts: dict[str, Any] = {"specctl": metadata.version("specctl"), "engine": last.engine, "release": last.release}
    facts |= dict.fromkeys(("torch", "device", "dtype", "threads"))
    facts["servers"] = [_server(runner.name, runner.server) for runner in found]
    return facts


def _server(name: str, server: Server) -> dict[str, Any]:
    return {
        "run": name,
        "url": server.endpoint.url,
        "model": server.model,
        "engine": server.engine,
        "release": server.release,
        "max_model_len": server.max_model_len,
        "kv_cache_tokens": None if server.page is None else server.page.kv_cache_tokens,
    }


def _notes(found: Sequence[EndpointRunner]) -> list[str]:
    """What is odd about the servers themselves."""
    notes = []
    first, last = found[0].server, found[-1].server
    if len(found) > 1:
        if (first.engine, first.release) != (last.engine, last.release):
            notes.append(f"the servers differ: {first.engine} {first.release} and {last.engine} {last.release}")
        if first.endpoint.url == last.endpoint.url:
            notes.append("both URLs are the same server: this is an A/A run")
        if first.page is not None and first.page.counts:
            notes.append("the baseline server counts drafts itself: it is no plain decoding, or drafting is merely off")
    return notes


def _lengthened(order: Order, tokenize: CountTokens | None) -> Workload:
    if order.lengths is None:
        return order.workload
    if order.lengths.random_tokens:
        raise UsageError("--random-tokens runs in process only", help="leave it out: --input-len then fills with text")
    if tokenize is None:
        found = stretched(order.workload, order.lengths, estimated, order.seed)
        note = "prompt lengths are estimated from words; --tokenizer FOLDER makes them exact"
        return replace(found, notes=(*found.notes, note))
    from specctl.bench.workloads import as_text

    return stretched(order.workload, order.lengths, lambda prompt: len(tokenize(as_text(prompt))), order.seed)


def tokenizer(folder: str) -> CountTokens:
    """Token ids of a text, without special tokens: what an answer has, not what a prompt gets around it."""
    from specctl.runtime.target import load_tokenizer

    path = Path(folder)
    if not path.is_dir():
        raise MissingError(f"no folder {folder} with a tokenizer")
    loaded = load_tokenizer(path)

    def ids(text: str) -> list[int]:
        found: list[int] = loaded(text, add_special_tokens=False)["input_ids"]
        return found

    return ids
