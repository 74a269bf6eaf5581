"""`specctl serve`: a model with a setting, behind the OpenAI API."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.option_groups import one_of
from specctl.errors import EXIT_OK, MissingError, UsageError

if TYPE_CHECKING:
    import socket

    from specctl.cli.serve_load import Loaded
    from specctl.cli.settings import Settings
    from specctl.runtime import Engine, Target
    from specctl.server.address import TlsFiles
    from specctl.server.options import ServerOptions
    from specctl.spec import SpecDecodeConfig

DEFAULT_TARGET = "demo"
REAL_ENGINES = ("vllm", "sglang", "trtllm")
REAL_ONLY = ("engine_command", "dry_run", "start_timeout", "metrics_interval")
SHARED = ("target", "engine", "host", "port", "release")
KEY_VARIABLE = "SPECCTL_API_KEY"
LOG_LEVELS = ("debug", "info", "warning", "error")
LOOPBACK = ("127.", "::1", "localhost")

Opt = typer.Option


def command(
    ctx: typer.Context,
    target: Annotated[str | None, typer.Argument(help="Folder, GGUF file, cached id or bundled name. [demo]")] = None,
    engine: Annotated[str, Opt(help="What runs: torch (the bundled runtime), vllm, sglang, trtllm.")] = "torch",
    engine_command: Annotated[str | None, Opt(help="Program of the real engine. [its name on PATH]")] = None,
    dry_run: Annotated[bool, Opt("--dry-run", help="Print the real engine's command and stop.")] = False,
    start_timeout: Annotated[float, Opt(min=1, help="Seconds that the real engine gets to be healthy.")] = 1800.0,
    metrics_interval: Annotated[float, Opt(min=0.1, help="Seconds between lines of its acceptance.")] = 10.0,
    host: Annotated[str, Opt(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Opt(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    dtype: Annotated[str, Opt(help="auto, float32, bfloat16, float16, float64.")] = "auto",
    device: Annotated[str, Opt(help="auto, cpu, cuda.")] = "auto",
    threads: Annotated[int | None, Opt(min=1, help="CPU threads. [the fastest in a short trial]")] = None,
    max_num_seqs: Annotated[int, Opt(min=1, help="Requests that run at once.")] = 16,
    max_model_len: Annotated[int | None, Opt(min=2, help="Tokens, prompt and answer. [the model's own]")] = None,
    max_num_batched_tokens: Annotated[int, Opt(min=1, help="Tokens a step before prompts must wait.")] = 512,
    kv_cache_memory: Annotated[str | None, Opt(metavar="SIZE", help="For the KV caches: 4GiB. [what is free]")] = None,
    gpu_memory_utilization: Annotated[float, Opt(min=0.01, max=1, help="Share of a GPU's memory to use.")] = 0.9,
    enable_prefix_caching: Annotated[bool, Opt(help="Begin with what earlier requests left in the cache.")] = True,
    speculation: Annotated[str, Opt(help="set, or auto: drafts as long as it pays by measurement.")] = "set",
    draft_check: Annotated[bool, Opt(help="Look at the start for what may be wrong with the draft.")] = True,
    coupled: Annotated[bool, Opt("--coupled", help="Sampled text does not depend on the draft.")] = False,
    max_queue: Annotated[int, Opt(min=0, help="Requests that may wait; one more gets 429.")] = 256,
    max_body_mib: Annotated[float, Opt(min=0.001, help="Largest request body, in MiB.")] = 8.0,
    served_model_name: Annotated[list[str] | None, Opt(help="Name in the API; may repeat. [TARGET]")] = None,
    api_key: Annotated[list[str] | None, Opt(help=f"Accepted key; may repeat. Also ${KEY_VARIABLE}.")] = None,
    api_key_file: Annotated[Path | None, Opt(metavar="FILE", help="Accepted keys, one a line.")] = None,
    allowed_origins: Annotated[list[str] | None, Opt(help="Web origin that may call (CORS); may repeat.")] = None,
    ssl_certfile: Annotated[Path | None, Opt(metavar="PEM", help="Certificate: serve https.")] = None,
    ssl_keyfile: Annotated[Path | None, Opt(metavar="PEM", help="Its private key.")] = None,
    drain_timeout: Annotated[float, Opt(min=0, help="Seconds that running requests get after SIGTERM.")] = 60.0,
    per_request_spec_decode_metrics: Annotated[str, Opt(help="In answers: none, summary, detailed.")] = "none",
    release: Annotated[str | None, Opt(help="The engine release that the setting is written for.")] = None,
    log_level: Annotated[str, Opt(help="debug, info, warning, error.")] = "info",
) -> int:
    """Parse, call, render, exit."""
    one_of("--engine", engine, ("torch", *REAL_ENGINES))
    if engine in REAL_ENGINES:
        from specctl.cli.serve_engine import Start, run_engine

        start = Start(engine, engine_command, dry_run, start_timeout, metrics_interval, host, port, release)
        return run_engine(ctx.obj, target, start, _typed(ctx, but=(*REAL_ONLY, *SHARED)))
    _only_real_engines(ctx)
    from specctl.cli.serve_load import LoadOptions, load
    from specctl.server.address import bind
    from specctl.server.options import PER_REQUEST_METRICS, ServerOptions

    one_of("--per-request-spec-decode-metrics", per_request_spec_decode_metrics, PER_REQUEST_METRICS)
    one_of("--log-level", log_level, LOG_LEVELS)
    one_of("--speculation", speculation, ("set", "auto"))
    keys = _keys(api_key or [], api_key_file)
    tls, origins = _tls(ssl_certfile, ssl_keyfile), _origins(allowed_origins or [])
    target, spec = _setting(ctx.obj, target, release)
    sock = bind(host, port)  # before the model is loaded: nobody wants to hear of a port in use a minute later
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_OK))  # while loading there is nothing to finish
    sizes = max_num_seqs, max_model_len, max_num_batched_tokens
    memory, how = (enable_prefix_caching, kv_cache_memory, gpu_memory_utilization), (coupled, speculation == "auto")
    loaded = load(target, spec, LoadOptions(device, dtype, threads, *sizes, *memory, *how, draft_check))
    options = ServerOptions(
        model_names=tuple(served_model_name or [target]),
        max_model_len=loaded.engine.max_model_len,
        max_num_seqs=loaded.engine.num_slots,
        max_queue=max_queue,
        api_keys=keys,
        allowed_origins=origins,
        max_body_bytes=int(max_body_mib * 2**20),
        per_request_metrics=per_request_spec_decode_metrics,
        speculative=spec is not None,
        method=spec.method.name if spec is not None and loaded.engine.lossless else "",
    )
    _announce(loaded, spec, options)
    _note(options, host)
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    return _run(loaded.target, loaded.engine, options, sock, drain_timeout, tls)


def _typed(ctx: typer.Context, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """The options that stand on the command line, by name."""
    here = {name: value for name, value in ctx.params.items() if name not in but}
    sources = {name: ctx.get_parameter_source(name) for name in here}
    return {name: value for name, value in here.items() if (source := sources[name]) and source.name == "COMMANDLINE"}


def _only_real_engines(ctx: typer.Context) -> None:
    wrong = next((name for name in REAL_ONLY if name in _typed(ctx)), None)
    if wrong is not None:
        raise UsageError(
            f"--{wrong.replace('_', '-')} is for vLLM, SGLang and TensorRT-LLM; torch, the bundled runtime, runs here",
            help=f"add --engine {', '.join(REAL_ENGINES)}, or leave it out",
        )


def _keys(given: list[str], file: Path | None) -> tuple[str, ...]:
    """All accepted keys. An empty one is refused: it would leave the server open where it was to be closed."""
    keys = list(given)
    if KEY_VARIABLE in os.environ:
        keys.append(os.environ[KEY_VARIABLE])
    if file is not None:
        try:
            lines = [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise MissingError(f"--api-key-file {file} cannot be read: {error}") from None
        found = [line for line in lines if line and not line.startswith("#")]
        if not found:
            raise UsageError(f"--api-key-file {file} holds no key", help="one key a line; lines with # are skipped")
        keys += found
    if any(not key.strip() for key in keys):
        raise UsageError("an API key is empty", help=f"check --api-key and ${KEY_VARIABLE}")
    return tuple(key.strip() for key in keys)


def _origins(given: list[str]) -> tuple[str, ...]:
    """Origins as browsers spell them; one with a path would never be met."""
    for origin in given:
        if origin != "*" and re.fullmatch(r"https?://[^/\s]+", origin) is None:
            raise UsageError(
                f"--allowed-origins is {origin!r}, which is no origin", help="write https://example.com, or *"
            )
    return tuple(given)


def _tls(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("--ssl-certfile and --ssl-keyfile belong together; one of them is missing")
    from specctl.server.address import TlsFiles

    return TlsFiles(certificate, key)


def _setting(settings: Settings, target: str | None, release: str | None) -> tuple[str, SpecDecodeConfig | None]:
    """The target and the one setting; its diagnostics are printed, an error ends the command."""
    options = settings.of_release(release)
    candidates = settings.candidates()
    if len(candidates) > 1:
        raise UsageError(
            f"{len(candidates)} settings were given; a server runs one", help="`specctl bench` compares several"
        )
    if target is None:
        named = [spec.target for spec, _ in settings.resolve(**options) if spec is not None and spec.target]
        target = named[0] if named else DEFAULT_TARGET
    specs = [spec for spec, _ in settings.to_run(target=target, **options)]
    spec = specs[0] if specs else None
    if spec is not None and spec.target not in (None, target):
        print(f"note: {spec.origin.source} is for {spec.target}; it is used on {target}", file=sys.stderr)
    return target, spec


def _announce(loaded: Loaded, spec: SpecDecodeConfig | None, options: ServerOptions) -> None:
    from specctl.cli.serve_load import memory_lines
    from specctl.runtime import environment

    facts = environment(loaded.target)
    print(f"target       {loaded.target.name}, {facts['dtype']} on {facts['device']}, {facts['threads']} threads")
    print(f"speculation  {_speculation(loaded.engine, spec)}")
    for note in (*loaded.notes, *loaded.engine.notes):
        print(f"             {note}" if note.startswith("WARNING") else f"             note: {note}")
    for line in memory_lines(loaded.plan, options.max_num_seqs):
        print(line)
    print(f"limits       {options.max_num_seqs} requests at once (max_num_seqs), {options.max_queue} more may wait")
    print(f"             {options.max_model_len} tokens each (max_model_len), prompt and answer")


def _note(options: ServerOptions, host: str) -> None:
    if not options.api_keys and not host.startswith(LOOPBACK):
        print(f"note: {host} is open to whoever reaches it; --api-key closes it", file=sys.stderr)
    if not options.speculative and options.per_request_metrics != "none":
        print("note: --per-request-spec-decode-metrics adds nothing: no speculation is set", file=sys.stderr)


def _speculation(engine: Engine, spec: SpecDecodeConfig | None) -> str:
    if spec is None:
        return "none"
    draft = f", draft {spec.model}" if spec.model else ""
    tree = f", tree of {engine.num_draft_tokens}" if spec.tree else ""
    kept = "lossless" if engine.lossless else "lossy: the acceptance of this setting changes answers"
    return f"{spec.method.name}, {_length(engine, spec)}{tree}{draft}, {kept}"


def _length(engine: Engine, spec: SpecDecodeConfig) -> str:
    k = engine.num_speculative_tokens
    if engine.measured_length:
        return f"k = 0 to {k} as measured"
    return f"k = {k} by a schedule" if spec.schedule or spec.max_concurrency else f"k = {k}"


def _run(
    target: Target,
    engine: Engine,
    options: ServerOptions,
    sock: socket.socket,
    drain_timeout: float,
    tls: TlsFiles | None,
) -> int:
    from specctl.server.address import url_of
    from specctl.server.life import make_server, run

    for noisy in ("asyncio", "httpx"):
        logging.getLogger(noisy).setLevel("WARNING")
    names = ", ".join(options.model_names)

    def ready() -> None:
        print(f"serving      {names} at {url_of(sock, tls is not None)}/v1; Ctrl-C or SIGTERM ends it", flush=True)

    ended = run(make_server(engine, target, options, drain_timeout, ready, tls), sock)
    print("stopped", flush=True)
    if not ended:
        # The engine is in a long step. Python would wait for torch's threads, or crash with them.
        sys.stderr.flush()
        os._exit(EXIT_OK)
    return EXIT_OK
