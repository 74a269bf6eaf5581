"""The options of `specctl bench`, group by group, and what they mean together."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.option_groups import one_of
from specctl.errors import MissingError, UsageError

if TYPE_CHECKING:
    from specctl.bench.arrivals import Arrivals
    from specctl.bench.gate import Gate
    from specctl.bench.lengths import Lengths
    from specctl.bench.order import Servers
    from specctl.bench.server import Endpoint
    from specctl.bench.workloads import Workload

BUNDLED_COUNT = 16
MAX_LENGTH = 99_999
DEFAULT_REPEATS = 5
PRECISION_REPEATS = 30
# From loading on; a bench without options then ends within two minutes on a slow or busy machine too.
DEFAULT_LIMIT_S = 105.0
ALL_LIMIT_S = 240.0
DEFAULT_TIMEOUT_S = 600.0
DEFAULT_NEAR_TIE = 0.25

Opt = typer.Option
Text = str | None
Number = float | None


@dataclass(frozen=True)
class RunOptions:
    """What is measured, how often, on what."""

    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET]", help="Folder, GGUF file, cached id or bundled name. [demo]"),
    ] = None
    methods: Annotated[Text, Opt(help="Methods to measure: ngram,draft_model. Plain decoding always runs.")] = None
    all_methods: Annotated[
        bool, Opt("--all-methods", help="Every method with a draft for the target; one request in flight.")
    ] = False
    k: Annotated[str, Opt("--k", help="Drafted tokens a step for --methods: 4, 2,4 or 1..7.")] = "4"
    draft: Annotated[list[str] | None, Opt(metavar="METHOD=MODEL", help="The draft of a method.")] = None
    concurrency: Annotated[Text, Opt(help="Requests in flight: 1,2,4,8. [1,8]")] = None
    repeats: Annotated[int | None, Opt(min=1, help="How often all is measured. [5, or what fits in time]")] = None
    precision: Annotated[
        Number, Opt(min=0.001, max=0.5, help="Repeat until each speed-up is known to this share: 0.02 is 2 %.")
    ] = None
    warmup: Annotated[int, Opt(min=0, help="Uncounted prompts for each runtime and level.")] = 4
    seed: Annotated[int, Opt(help="Of sampling, the order of turns and the intervals.")] = 0
    against: Annotated[str, Opt(help="transformers, transformers-lookup, transformers-assisted.")] = ""
    device: Annotated[str, Opt(help="auto, cpu, cuda.")] = "auto"
    dtype: Annotated[str, Opt(help="auto, float32, bfloat16, float16, float64.")] = "auto"
    threads: Annotated[int | None, Opt(min=1, help="CPU threads. [the fastest in a short trial]")] = None
    release: Annotated[Text, Opt(help="The engine release that the settings are written for.")] = None
    speculation: Annotated[
        str, Opt(help="set: drafts as long as the setting says; auto: as long as it pays by measurement, at most so.")
    ] = "set"
    draft_check: Annotated[bool, Opt(help="Look at the start for what may be wrong with a draft.")] = True
    check_outputs: Annotated[bool, Opt("--check-outputs/--no-check-outputs", help="Compare outputs.")] = True
    resume: Annotated[
        Text, Opt(metavar="FILE", help="Keep finished blocks here, and go on where an earlier run stopped.")
    ] = None
    quiet: Annotated[bool, Opt("--quiet", "-q", help="No progress.")] = False

    def check_in_process(self, real: bool) -> None:
        """Raise `UsageError` for options of the bundled runtime beside a server; `real`: an engine that is started."""
        given = {
            "--against": self.against,
            "--device": self.device != "auto",
            "--dtype": self.dtype != "auto",
            "--threads": self.threads,
        }
        cure = "give the engine's own flags behind --" if real else "set it where the server is started"
        if not real:
            given |= {"--methods": self.methods, "--all-methods": self.all_methods, "--draft": self.draft}
            given["--k"] = self.k != "4"
        for option, value in given.items():
            if value:
                raise UsageError(f"{option} is of the bundled runtime, and a server is measured", help=cure)
        if real and self.precision is not None:
            raise UsageError(
                "--precision needs both sides in turns, and engines are started one after the other",
                help="give --repeats, or start both and name them with --url and --baseline-url",
            )

    @property
    def most_repeats(self) -> int:
        """Repeats at most."""
        return self.repeats or (DEFAULT_REPEATS if self.precision is None else PRECISION_REPEATS)

    @property
    def time_limit_s(self) -> float | None:
        """The limit that holds where nobody said how often or how exactly."""
        free = self.repeats is None and self.precision is None and self.resume is None
        return (ALL_LIMIT_S if self.all_methods else DEFAULT_LIMIT_S) if free else None

    @property
    def levels_typed(self) -> str | None:
        """The levels of concurrency, where they are not the usual ones: a bound is of one stream."""
        return self.concurrency or ("1" if self.all_methods else None)


@dataclass(frozen=True)
class SamplingOptions:
    """How tokens are picked."""

    output_len: Annotated[int, Opt(min=1, help="At most this many new tokens a request.")] = 128
    temperature: Annotated[float, Opt(help="0 is greedy.")] = 0.0
    top_p: Annotated[float, Opt(help="1 is off.")] = 1.0
    top_k: Annotated[int, Opt(help="0 is off.")] = 0
    min_p: Annotated[float, Opt(help="0 is off.")] = 0.0
    ignore_eos: Annotated[bool, Opt("--ignore-eos", help="Go on to --output-len; flatters drafts.")] = False

    def sampling(self) -> dict[str, Any]:
        """The runtime's names."""
        return {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "max_tokens": self.output_len,
            "ignore_eos": self.ignore_eos,
        }


@dataclass(frozen=True)
class UrlOptions:
    """Running servers in place of the bundled engine."""

    url: Annotated[Text, Opt(help="Measure this OpenAI-compatible server.")] = None
    baseline_url: Annotated[Text, Opt(help="Compare it with this one, which decodes plainly.")] = None
    api_key: Annotated[Text, Opt(envvar="OPENAI_API_KEY", show_envvar=True, help="Its key.")] = None
    baseline_api_key: Annotated[Text, Opt(help="The baseline's key, where it is another.")] = None
    model: Annotated[Text, Opt(help="The served model's name. [the first that is listed]")] = None
    tokenizer: Annotated[Text, Opt(metavar="FOLDER", help="Counts tokens where a stream has no usage.")] = None
    endpoint: Annotated[str, Opt(help="chat or completions.")] = "chat"
    extra_body: Annotated[Text, Opt(metavar="JSON", help="More fields for every request.")] = None
    timeout: Annotated[float, Opt(min=0.1, help="Seconds that a request may take.")] = DEFAULT_TIMEOUT_S
    near_tie: Annotated[float, Opt(min=0, help="Logits within which a server's outputs may differ.")] = DEFAULT_NEAR_TIE

    def servers(self, real: bool) -> Servers | None:
        """The servers to measure; None: what specctl starts itself, a `real` engine or the bundled runtime.

        Raises `UsageError` for options that need `--url`.
        """
        from specctl.bench.order import Servers

        if self.url is None:
            self._check_unused(real)
            return None
        baseline = None if self.baseline_url is None else self._endpoint(self.baseline_url, "--baseline-url")
        return Servers(self._endpoint(self.url, "--url"), baseline, None, self.tokenizer, self.near_tie)

    def _check_unused(self, real: bool) -> None:
        given: dict[str, object] = {
            "--baseline-url": self.baseline_url,
            "--model": self.model,
            "--tokenizer": self.tokenizer,
            "--extra-body": self.extra_body,
            "--baseline-api-key": self.baseline_api_key,
            "--endpoint": None if self.endpoint == "chat" else self.endpoint,
            "--timeout": None if self.timeout == DEFAULT_TIMEOUT_S else self.timeout,
            "--near-tie": None if real or self.near_tie == DEFAULT_NEAR_TIE else self.near_tie,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} is about a running server", help="give its address with --url")

    def _endpoint(self, url: str, option: str) -> Endpoint:
        from specctl.bench.server import CHAT, COMPLETIONS, Endpoint, root_of

        one_of("--endpoint", self.endpoint, (CHAT, COMPLETIONS))
        key = self.baseline_api_key if option == "--baseline-url" and self.baseline_api_key else self.api_key
        return Endpoint(root_of(url, option), self.model, key or None, self.endpoint, self._extra(), self.timeout)

    def _extra(self) -> dict[str, Any]:
        try:
            found = json.loads(self.extra_body or "{}")
        except ValueError as error:
            raise UsageError(f"--extra-body is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise UsageError("--extra-body must be a JSON object", help='for instance {"ignore_eos": true}')
        return found


@dataclass(frozen=True)
class WorkOptions:
    """Prompts and arrivals."""

    prompts: Annotated[
        Text,
        Opt(
            metavar="FILE", help="JSONL rows (prompt, messages, turns, conversations), a folder of such, demo or text."
        ),
    ] = None
    categories: Annotated[Text, Opt(help="Only prompts of these categories.")] = None
    num_prompts: Annotated[
        int | None, Opt(min=1, help="Prompts a repeat and level. [16 bundled, or all of --prompts]")
    ] = None
    max_turns: Annotated[
        int | None, Opt(min=1, help="Questions of a conversation that are asked, answers in between. [all]")
    ] = None
    input_len: Annotated[Text, Opt(help="Fill prompts with text up to these lengths: 512,2048.")] = None
    random_tokens: Annotated[bool, Opt("--random-tokens", help="Prompts of random tokens (times only).")] = False
    request_rate: Annotated[Number, Opt(help="Requests a second that arrive, in place of a closed loop.")] = None
    burstiness: Annotated[float, Opt(help="Of --request-rate: 1 is Poisson, below 1 bursts.")] = 1.0
    trace: Annotated[Text, Opt(metavar="FILE", help="Replay rows that have a timestamp in seconds.")] = None
    trace_speed: Annotated[float, Opt(help="Replay this much faster.")] = 1.0
    goodput: Annotated[
        list[str] | None, Opt(metavar="tpot:MS ttft:MS e2e:MS", help="Count requests that keep these promises.")
    ] = None

    def workload(self, bundled: str, rounds: int) -> Workload:
        """The prompts, enough for `rounds` turns where there are enough."""
        from specctl.bench.arrivals import check_trace
        from specctl.bench.conversation import shortened
        from specctl.bench.workloads import choose, read_workload

        wanted = (
            None if self.categories is None else [part.strip() for part in self.categories.split(",") if part.strip()]
        )
        if self.trace is not None and self.prompts is not None:
            raise UsageError("--trace and --prompts both name the prompts", help="give one of them")
        read = shortened(read_workload(self.trace or self.prompts, bundled), self.max_turns)
        if self.trace is not None:
            check_trace(read.prompts)
        return choose(read, wanted, self.count, rounds, replayed=self.trace is not None)

    @property
    def count(self) -> int | None:
        """Prompts a repeat and level; None: all there are, each time."""
        own = self.prompts is not None or self.trace is not None
        return BUNDLED_COUNT if not own and self.num_prompts is None else self.num_prompts

    def arrivals(self) -> Arrivals | None:
        """When requests arrive; None: a closed loop."""
        from specctl.bench.arrivals import Arrivals

        if self.trace is not None and self.request_rate is not None:
            raise UsageError("--trace brings its own times; --request-rate makes others", help="give one of them")
        if self.trace is not None:
            return Arrivals(trace=True, speed=self.trace_speed)
        if self.request_rate is None:
            if self.burstiness != 1.0:
                raise UsageError("--burstiness is about --request-rate, which is not given")
            return None
        return Arrivals(self.request_rate, self.burstiness)

    def lengths(self) -> Lengths | None:
        """The lengths of prompts that are wanted; None: as they are."""
        from specctl.bench.candidates import number_list
        from specctl.bench.lengths import Lengths

        if self.input_len is None:
            if self.random_tokens:
                raise UsageError("--random-tokens needs the lengths", help="give them with --input-len 512,2048")
            return None
        tokens = tuple(number_list(self.input_len, "--input-len", largest=MAX_LENGTH))
        return Lengths(tokens, self.random_tokens)


@dataclass(frozen=True)
class OutputOptions:
    """What is written where, and what fails the command."""

    gate: Annotated[bool, Opt("--gate", help="Exit with 1 unless a draft is kept at the lowest level.")] = False
    min_acceptance_length: Annotated[Number, Opt(help="The gate fails below it.")] = None
    min_speedup: Annotated[Number, Opt(help="The gate fails where no candidate reaches it.")] = None
    baseline_json: Annotated[Text, Opt(metavar="FILE", help="The gate fails for regressions from this report.")] = None
    output_json: Annotated[Text, Opt(metavar="FILE", help="Write the report as JSON.")] = None
    save_detailed: Annotated[bool, Opt("--save-detailed", help="JSON with the times of each request.")] = False
    html: Annotated[Text, Opt(metavar="FILE", help="Write the report as one HTML page.")] = None
    write_preset: Annotated[Text, Opt(metavar="FILE", help="Write the setting to keep as a preset.")] = None
    format: Annotated[str, Opt(help="On standard output: text, json, markdown, csv or vllm.")] = "text"

    def check(self) -> Gate | None:
        """The gate. Raises `UsageError` or `MissingError` for what would only be noticed after the run."""
        from specctl.bench.formats import check_format
        from specctl.bench.gate import read_gate

        check_format(self.format)
        for file in (self.output_json, self.html, self.write_preset):
            check_writable(file)
        return read_gate(self.gate, self.min_acceptance_length, self.min_speedup, self.baseline_json)


def levels(typed: str | None, arrivals: Arrivals | None, count: int) -> tuple[tuple[int, ...], bool]:
    """The levels of concurrency, and whether they cap what is in flight: arrivals are free unless a cap is typed."""
    from specctl.bench.candidates import number_list

    if typed is None and arrivals is not None:
        return (count,), False
    return tuple(number_list(typed or "1,8", "--concurrency")), True


def split_target(words: Sequence[str], goodput: Sequence[str]) -> tuple[str | None, list[str]]:
    """The target among the positional words, and the promises of `--goodput`, which may stand apart by blanks."""
    from specctl.bench.goodput import is_promise

    promises = [word for word in words if is_promise(word)] if goodput else []
    rest = [word for word in words if word not in promises]
    if len(rest) > 1:
        raise UsageError(f"one target is measured; {len(rest)} are named: {', '.join(rest)}")
    return (rest[0] if rest else None), [*goodput, *promises]


def check_writable(file: str | None) -> None:
    """Raise `MissingError` where a file could not be written after the run."""
    if file is None:
        return
    path = Path(file)
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if path.exists():
            path.open("a").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise MissingError(f"cannot write {file}: {error.strerror or error}") from None


def write(file: str, text: str) -> None:
    """Write a result. Last of all, so that a full disk costs the file and not the figures."""
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise MissingError(f"cannot write {file}: {error.strerror or error}") from None
