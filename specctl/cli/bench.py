"""`specctl bench`: measure settings against plain decoding on the same prompts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from specctl.cli.bench_engine import EngineOptions
from specctl.cli.bench_options import (
    OutputOptions,
    RunOptions,
    SamplingOptions,
    UrlOptions,
    WorkOptions,
    check_writable,
    levels,
    split_target,
    write,
)
from specctl.cli.option_groups import one_of, taking
from specctl.errors import EXIT_FINDINGS, EXIT_OK, SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.bench.gate import Gate
    from specctl.bench.order import Order, Outcome, Servers
    from specctl.cli.settings import Settings
    from specctl.spec import SpecDecodeConfig

EXIT_INTERRUPTED = 130
MAX_NAMED_FAILURES = 5


def _bench(
    ctx: typer.Context,
    run: RunOptions,
    work: WorkOptions,
    sampling: SamplingOptions,
    urls: UrlOptions,
    engine: EngineOptions,
    output: OutputOptions,
) -> int:
    """Parse, call, render, exit."""
    from specctl.bench import progress
    from specctl.bench.run import shown

    gate = output.check()
    check_writable(run.resume)
    order = _order(ctx.obj, run, work, sampling, urls, engine)
    outcome = shown(order, progress.choose(run.quiet))
    _render(outcome, output.format, output.save_detailed)
    _write_files(outcome, output)
    return _status(outcome, gate)


command = taking(_bench, RunOptions, WorkOptions, SamplingOptions, UrlOptions, EngineOptions, OutputOptions)


def _order(
    settings: Settings,
    run: RunOptions,
    work: WorkOptions,
    sampling: SamplingOptions,
    urls: UrlOptions,
    engine: EngineOptions,
) -> Order:
    """Everything that was typed, read and checked as far as that goes without loading a model."""
    from specctl.bench import candidates, goodput, peers
    from specctl.bench.order import Order

    typed, promises = split_target(run.target or [], work.goodput or [])
    servers = urls.servers(engine.real)
    if servers is not None or engine.real:
        run.check_in_process(engine.real)
    more = settings.behind_dashes() if engine.real else ()
    own = settings.without_command() if engine.real else settings
    target, given = _settings(own, typed, own.of_release(run.release) | engine.checked_by(), servers is not None)
    drafts = candidates.draft_options(run.draft or [])
    ks = candidates.number_list(run.k, "--k", largest=candidates.MAX_K)
    specs = given if servers else _specs(run, ks, drafts, target, given)
    remote = servers is not None
    if engine.real:
        servers = _started(engine, servers, target, more, urls)
    arrivals = work.arrivals()
    turns = run.most_repeats * len(levels(run.levels_typed, arrivals, 1)[0])
    workload = work.workload(_bundled_set(target, remote), turns)
    concurrency, capped = levels(run.levels_typed, arrivals, work.count or len(workload.prompts))
    return Order(
        target=target,
        specs=specs,
        workload=workload,
        concurrency=concurrency,
        capped=capped,
        repeats=run.most_repeats,
        time_limit_s=run.time_limit_s,
        precision=run.precision,
        warmup=run.warmup,
        sampling=sampling.sampling(),
        seed=run.seed,
        num_prompts=work.count,
        arrivals=arrivals,
        lengths=work.lengths(),
        promises=goodput.read_promises(promises),
        journal=None if run.resume is None else Path(run.resume),
        servers=servers,
        peers=peers.peer_names(run.against),
        peer_k=ks[-1],
        peer_draft=candidates.assistant(specs, drafts, target),
        check_outputs=run.check_outputs,
        device=run.device,
        dtype=run.dtype,
        threads=run.threads,
        lenient=run.all_methods,
        measured_length=_measured_length(run, servers),
        draft_check=run.draft_check,
    )


def _measured_length(run: RunOptions, servers: Servers | None) -> bool:
    one_of("--speculation", run.speculation, ("set", "auto"))
    if run.speculation == "auto" and servers is not None:
        raise UsageError(
            "--speculation auto is of the bundled runtime; a server drafts as it was started to",
            help="leave it out; `specctl serve --speculation auto` starts a server so",
        )
    return run.speculation == "auto"


def _specs(
    run: RunOptions, ks: list[int], drafts: dict[str, str], target: str, given: list[SpecDecodeConfig]
) -> list[SpecDecodeConfig]:
    """What is measured; methods that `--all-methods` must leave out are named."""
    from specctl.bench.all_methods import choose_all
    from specctl.bench.candidates import choose_specs

    if not run.all_methods:
        return choose_specs(given, run.methods, ks, drafts, target)
    specs, left_out = choose_all(run.methods, ks, drafts, target)
    for note in left_out:
        print(f"note: {note}", file=sys.stderr)
    return [*specs, *given]


def _started(
    engine: EngineOptions, servers: Servers | None, target: str, more: tuple[str, ...], urls: UrlOptions
) -> Servers:
    """The servers that a real engine becomes. Raises `UsageError` where others are named, too."""
    if servers is not None:
        raise UsageError(
            f"--url names a running server, and --engine {engine.engine} starts one", help="give one of them"
        )
    return engine.servers(target, more, urls.near_tie)


def _settings(
    settings: Settings, target: str | None, options: dict[str, Any], remote: bool
) -> tuple[str, list[SpecDecodeConfig]]:
    """The target and the settings of the command line; diagnostics are printed, an error ends the command."""
    from specctl.bench.candidates import common_target

    if target is None and not remote:
        read = [spec for spec, _ in settings.resolve(**options) if spec is not None]
        target = common_target(None, read)
    specs = [spec for spec, _ in settings.to_run(**({} if target is None else {"target": target}), **options)]
    if settings and not specs:
        raise SpecctlError(
            "the setting leaves speculation off, so there is nothing to measure", help="name a method, or leave it out"
        )
    for spec in specs:
        if target is not None and spec.target not in (None, target):
            print(f"note: {spec.origin.source} is for {spec.target}; it is measured on {target}", file=sys.stderr)
    return target or "", specs


def _bundled_set(target: str, remote: bool) -> str:
    """The demo knows only what its own generator writes; every other model gets prompts in plain English."""
    from specctl.bench.candidates import DEFAULT_TARGET
    from specctl.bench.workloads import DEMO_SET, TEXT_SET

    return DEMO_SET if target == DEFAULT_TARGET and not remote else TEXT_SET


def _render(outcome: Outcome, format: str, detailed: bool) -> None:
    from specctl.bench.formats import as_text
    from specctl.bench.report import show

    unsaid = []
    if format == "text":
        show(outcome.report)
    else:
        sys.stdout.write(as_text(outcome.report, format, detailed))
        unsaid = [_told(note) for note in outcome.notes]
    for line in [*unsaid, *outcome.failures[:MAX_NAMED_FAILURES]]:
        print(line, file=sys.stderr)
    if len(outcome.failures) > MAX_NAMED_FAILURES:
        print(f"and {len(outcome.failures) - MAX_NAMED_FAILURES} more failed; --output-json has all", file=sys.stderr)


def _told(note: str) -> str:
    return note if "WARNING" in note else f"note: {note}"


def _write_files(outcome: Outcome, output: OutputOptions) -> None:
    from specctl.bench import advice
    from specctl.bench.formats import as_text

    if output.output_json is not None:
        write(output.output_json, as_text(outcome.report, "json", output.save_detailed))
    if output.html is not None:
        from specctl.bench.page import page

        write(output.html, page([outcome.report]))
    if output.write_preset is not None and outcome.kept is not None:
        write(output.write_preset, advice.preset(outcome.kept, outcome.report))
    elif output.write_preset is not None:
        why = "the verdict keeps no setting that is known"
        print(f"note: no preset is written to {output.write_preset}: {why}", file=sys.stderr)


def _status(outcome: Outcome, wall: Gate | None) -> int:
    from specctl.bench.gate import check
    from specctl.bench.results import differing

    broken = [] if wall is None else check(outcome.report, wall)
    for line in broken:
        print(f"gate: {line}", file=sys.stderr)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FINDINGS if broken or differing(outcome.report) or outcome.failures else EXIT_OK
