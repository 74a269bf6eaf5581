"""`specctl bench`: measure settings against plain decoding on the same prompts."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.errors import EXIT_FINDINGS, EXIT_OK, MissingError, SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.bench.results import Report
    from specctl.bench.run import Outcome
    from specctl.bench.workloads import Workload
    from specctl.cli.settings import Settings
    from specctl.spec import SpecDecodeConfig

EXIT_INTERRUPTED = 130
BUNDLED_COUNT = 16
DEFAULT_REPEATS = 5
# From loading on; a bench without options then ends within two minutes on a slow or busy machine too.
DEFAULT_LIMIT_S = 105.0
MAX_NAMED_FAILURES = 5
FORMATS = ("text", "json")

Opt = typer.Option


def command(
    ctx: typer.Context,
    target: Annotated[str | None, typer.Argument(help="Folder, GGUF file, cached id or bundled name. [demo]")] = None,
    methods: Annotated[
        str | None, Opt(help="Methods to measure: ngram,draft_model. Plain decoding always runs.")
    ] = None,
    k: Annotated[str, Opt("--k", help="Drafted tokens a step for --methods: 4, 2,4 or 1..7.")] = "4",
    draft: Annotated[list[str] | None, Opt(metavar="METHOD=MODEL", help="The draft of a method.")] = None,
    concurrency: Annotated[str, Opt(help="Requests in flight: 1,2,4,8.")] = "1,8",
    num_prompts: Annotated[int | None, Opt(min=1, help="How many prompts. [16 bundled, or all of --prompts]")] = None,
    output_len: Annotated[int, Opt(min=1, help="At most this many new tokens a request.")] = 128,
    repeats: Annotated[int | None, Opt(min=1, help="How often all is measured. [5, or what fits into 105 s]")] = None,
    warmup: Annotated[int, Opt(min=0, help="Uncounted prompts for each runtime and level.")] = 4,
    prompts: Annotated[str | None, Opt(metavar="FILE", help="JSONL rows: prompt, messages or turns.")] = None,
    categories: Annotated[str | None, Opt(help="Only prompts of these categories.")] = None,
    temperature: Annotated[float, Opt(help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, Opt(help="1 is off.")] = 1.0,
    top_k: Annotated[int, Opt(help="0 is off.")] = 0,
    min_p: Annotated[float, Opt(help="0 is off.")] = 0.0,
    seed: Annotated[int, Opt(help="Of sampling, the order of turns and the intervals.")] = 0,
    against: Annotated[str, Opt(help="transformers, transformers-lookup, transformers-assisted.")] = "",
    device: Annotated[str, Opt(help="auto, cpu, cuda.")] = "auto",
    dtype: Annotated[str, Opt(help="auto, float32, bfloat16, float16, float64.")] = "auto",
    threads: Annotated[int | None, Opt(min=1, help="CPU threads. [the fastest in a short trial]")] = None,
    release: Annotated[str | None, Opt(help="The engine release that the settings are written for.")] = None,
    output_json: Annotated[str | None, Opt(metavar="FILE", help="Write the report as JSON.")] = None,
    check_outputs: Annotated[bool, Opt("--check-outputs/--no-check-outputs", help="Compare outputs.")] = True,
    format: Annotated[str, Opt(help="On standard output: text or json.")] = "text",
    quiet: Annotated[bool, Opt("--quiet", "-q", help="No progress.")] = False,
) -> int:
    """Parse, call, render, exit."""
    from specctl.bench import candidates, peers, progress
    from specctl.bench.run import Order, shown

    if format not in FORMATS:
        raise UsageError(f"--format is {format!r}; it must be text or json")
    if output_json is not None:
        _check_writable(Path(output_json))
    target, given = _settings(ctx.obj, target, release)
    drafts = candidates.draft_options(draft or [])
    ks = candidates.number_list(k, "--k", largest=candidates.MAX_K)
    specs = candidates.choose_specs(given, methods, ks, drafts, target)
    order = Order(
        target=target,
        specs=specs,
        workload=_workload(prompts, categories, num_prompts),
        concurrency=tuple(candidates.number_list(concurrency, "--concurrency")),
        repeats=DEFAULT_REPEATS if repeats is None else repeats,
        time_limit_s=DEFAULT_LIMIT_S if repeats is None else None,
        warmup=warmup,
        sampling={"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p, "max_tokens": output_len},
        seed=seed,
        peers=peers.peer_names(against),
        peer_k=ks[-1],
        peer_draft=candidates.assistant(specs, drafts, target),
        check_outputs=check_outputs,
        device=device,
        dtype=dtype,
        threads=threads,
    )
    outcome = shown(order, progress.choose(quiet))
    _render(outcome, format, output_json)
    return _status(outcome)


def _settings(settings: Settings, target: str | None, release: str | None) -> tuple[str, list[SpecDecodeConfig]]:
    """The target and the settings of the command line; diagnostics are printed, an error ends the command."""
    from specctl.bench.candidates import common_target

    options: dict[str, Any] = {} if release is None else {"release": release}
    if target is None:
        read = [spec for spec, _ in settings.resolve(**options) if spec is not None]
        target = common_target(None, read)
    specs = [spec for spec, _ in settings.require(target=target, **options)]
    if settings and not specs:
        raise SpecctlError(
            "the setting leaves speculation off, so there is nothing to measure", help="name a method, or leave it out"
        )
    for spec in specs:
        if spec.target not in (None, target):
            print(f"note: {spec.origin.source} is for {spec.target}; it is measured on {target}", file=sys.stderr)
    return target, specs


def _workload(prompts: str | None, categories: str | None, num_prompts: int | None) -> Workload:
    from specctl.bench.workloads import choose, read_workload

    wanted = None if categories is None else [name.strip() for name in categories.split(",") if name.strip()]
    count = BUNDLED_COUNT if prompts is None and num_prompts is None else num_prompts
    return choose(read_workload(prompts), wanted, count)


def _check_writable(file: Path) -> None:
    """Raise `MissingError` where the report could not be written after the run."""
    try:
        if file.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if file.exists():
            file.open("a").close()
        else:
            tempfile.TemporaryFile(dir=file.parent).close()
    except OSError as error:
        raise MissingError(f"cannot write {file}: {error.strerror or error}") from None


def _render(outcome: Outcome, format: str, output_json: str | None) -> None:
    from specctl.bench.report import show

    if format == "json":
        sys.stdout.write(_json(outcome.report))
    else:
        show(outcome.report)
    for line in [*(f"note: {note}" for note in outcome.notes), *outcome.failures[:MAX_NAMED_FAILURES]]:
        print(line, file=sys.stderr)
    if output_json is not None:
        _write(Path(output_json), outcome.report)


def _write(file: Path, report: Report) -> None:
    """Last of all, so that a full disk costs the file and not the figures."""
    try:
        file.write_text(_json(report), encoding="utf-8")
    except OSError as error:
        raise MissingError(f"cannot write {file}: {error.strerror or error}") from None


def _json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _status(outcome: Outcome) -> int:
    from specctl.bench.results import differing

    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FINDINGS if differing(outcome.report) or outcome.failures else EXIT_OK
