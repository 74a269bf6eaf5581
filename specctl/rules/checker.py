"""Reads a setting from any carrier and judges it: the way from a source to a `Report`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from specctl.dialects.dialect import DIALECTS, told_apart
from specctl.dialects.limits import outside_limits
from specctl.dialects.reading import Finding, Reading, Surroundings
from specctl.errors import UsageError
from specctl.rules.judge import judge
from specctl.rules.report import Report
from specctl.rules.sources import document_of, of_any_ending, usage, words
from specctl.source import Document, read_file, read_yaml, sniff
from specctl.source.command import command_document, entry_of, environment_of
from specctl.source.document import from_bytes
from specctl.spec.release import known

ENGINES = ("vllm", "sglang", "trtllm", "specctl")
_TREES = (".yaml", ".yml", ".json", "stdin>")  # what is read as YAML or JSON before anything else


Source = str | bytes | Path | Mapping[str, Any] | list[Any] | None


class CheckOptions(TypedDict, total=False):
    """The keyword arguments of `check`."""

    engine: str
    release: str | None
    form: str
    target: str | Path | None
    platform: str | None
    engine_args: Mapping[str, Any] | None
    env: Mapping[str, str] | None
    host: Mapping[str, Any] | None


def check(
    source: Source,
    *,
    engine: str = "auto",
    release: str | None = None,
    form: str = "auto",
    target: str | Path | None = None,
    platform: str | None = None,
    engine_args: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    host: Mapping[str, Any] | None = None,
) -> Report:
    """Say what an engine will do with a setting. Never raises for a bad setting, only for wrong use of itself.

    `source`: text or bytes (JSON, YAML or a command line), a mapping, an argv list or a `Path`. `engine`: `vllm`,
    `sglang`, `trtllm`, `specctl` or `auto` (told by content); `release`: of that engine (default:
    vLLM 0.31.0, SGLang 0.5.22, TensorRT-LLM 1.2.1).
    `form`: `json`, `yaml`, `argv`, `python` or `auto`. `target`: folder, id or bundled name of the model that is
    served, or a preset that names one. `platform`: a GPU kind such as `h100`, or `cpu`. `engine_args`: the engine's
    other arguments by their Python names; `env`: its environment variables; `host`: facts of the machine. Raises
    `UsageError` for an unknown engine, form or release and for arguments of a wrong type, `MissingError` where a `Path`
    does not exist."""
    if engine != "auto" and engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", help=f"engines are {', '.join(ENGINES)} and auto")
    around_it = {"engine_args": engine_args, "env": env, "host": host}
    usage(source, form, {**around_it, "release": release, "platform": platform, "target": target})
    around = Surroundings(
        target=target_of(str(target)) if target is not None else None,
        args=dict(engine_args or {}),
        env=dict(env or {}),
        platform=platform,
        host=dict(host or {}),
    )
    document, form = document_of(source, form, engine)
    if engine != "auto":
        known_release(engine, release)
    try:
        return check_document(document, form, engine=engine, release=release, around=around)
    except UsageError as error:
        if "two spellings" not in error.message:
            raise
        return mixed(document, error.message)


def known_release(engine: str, release: str | None) -> str:
    """As `known`; raises `UsageError` where the text is no release."""
    try:
        return known(engine, release)
    except ValueError as error:
        raise UsageError(str(error)) from None


def target_of(name: str) -> str:
    """The model that `name` means as a target: itself, or the target of the preset of that name where no model is
    called so. Raises `UsageError` for a preset that is for any target.
    """
    from specctl.resources import find_model, preset

    path = preset(name)
    if path is None or find_model(name) is not None:
        return name
    value = read_yaml(read_file(path)).value
    target = value.get("target") if isinstance(value, dict) else None
    if not isinstance(target, str):
        raise UsageError(f"the preset {name} is for any target", help="name the model itself")
    return target


def check_document(
    document: Document,
    form: str,
    *,
    engine: str,
    release: str | None,
    around: Surroundings,
    dialect: str | None = None,
    **filters: Any,
) -> Report:
    """The report on a document that was read."""
    return judge(
        read_document(document, form, engine=engine, release=release, around=around, dialect=dialect), **filters
    )


def read_document(
    document: Document, form: str, *, engine: str, release: str | None, around: Surroundings, dialect: str | None = None
) -> Reading:
    """The reading of a document.

    `dialect`: a name, `auto` (told by content) or None (the engine's own, or told by content where the engine is
    `auto`). specctl's own files are always known by their `specctl:` line."""
    if form == "argv" and document.readable:
        around.env = {**environment_of(document.value), **around.env}
    name = dialect if dialect not in (None, "auto") else None
    if name is None and _is_own(document):
        name = "specctl"
    if name is None and dialect is None and engine != "auto":
        name = engine
    if name is None:
        name, seen = told_apart(document, form)
        if name is None and engine == "auto":
            return _untold(document, seen, release, around)
        name = name or engine
    judge_engine = engine if engine != "auto" else name
    wanted = known_release(judge_engine, release)
    if judge_engine != name:
        from specctl.dialects.convert import reread

        first = _any_release(name, document, form, around)
        if first.spec is not None:
            first.findings += outside_limits(first.spec, judge_engine, release or wanted)
        return reread(first, judge_engine, wanted)
    reading = DIALECTS[name].read(document, around, wanted, form)
    _note_release(reading, release)
    return reading


def _any_release(name: str, document: Document, form: str, around: Surroundings) -> Reading:
    """The reading under the first known release that takes the setting; under the default one where none does."""
    from dataclasses import replace

    from specctl.spec.release import KNOWN_RELEASES

    default = known(name, None)
    first: Reading | None = None
    for release in (default, *(each for each in KNOWN_RELEASES[name] if each != default)):
        fresh = Surroundings(around.target, dict(around.args), around.env, around.platform, around.host)
        reading = DIALECTS[name].read(replace(document, problems=list(document.problems)), fresh, release, form)
        first = first or reading
        if reading.spec is not None and not any(finding.code in ("SPC005", "SPC101") for finding in reading.findings):
            return reading
    assert first is not None
    return first


def _is_own(document: Document) -> bool:
    return isinstance(document.value, dict) and "specctl" in document.value


def _note_release(reading: Reading, release: str | None) -> None:
    notes = reading.notes.setdefault("assumptions", [])
    if release is not None and release.strip().removeprefix("v") != reading.release:
        if reading.engine == "specctl":
            notes.append(f"release {release} is an engine's; specctl's own runtime has none (name --engine)")
        else:
            notes.append(f"release {release} is not known; the rules of {reading.release} were applied")


def mixed(document: Document, message: str) -> Report:
    """The report on a file that mixes spellings, for runs over many files."""
    reading = Reading("unknown", "unknown", "", document, Surroundings(), blocked=True)
    reading.say(
        Finding("SPC014", message, (), help="keep one of the spellings, or name the one to read with --dialect")
    )
    return judge(reading)


def _untold(document: Document, seen: str, release: str | None, around: Surroundings) -> Reading:
    reading = Reading("unknown", "unknown", release or "", document, around, blocked=True)
    if document.readable:
        reading.say(
            Finding(
                "SPC013",
                f"this holds no setting of speculation that specctl knows: {seen}",
                (),
                help="write the setting into it"
                if seen == "it is empty"
                else "name the engine with --engine, or the spelling with --dialect",
            )
        )
    return reading


def open_document(path: str) -> Document:
    """A file's text, not read yet; `-` is standard input. Raises `MissingError` where it is missing."""
    if path != "-":
        return read_file(Path(path))
    import sys

    document = from_bytes("<stdin>", sys.stdin.buffer.read())
    document.form = sniff(document.text)
    return document


def check_path(path: str, **options: Any) -> Report:
    """The report on one file, for the command line (`-` is standard input); `options` are those of `check`, and
    `dialect`.
    """
    return check_loaded(open_document(path), **options)


def check_loaded(document: Document, **options: Any) -> Report:
    """The report on a file that was opened."""
    if document.readable:
        of_any_ending(document)
    return _check_parsed(document, **options)


def check_file(document: Document, **options: Any) -> list[Report]:
    """The reports on a file that was opened: its own setting, or all those inside it.

    A file that sets no speculation gives one report with SPC013."""
    if document.readable and document.source.endswith(_TREES):
        of_any_ending(document)
        spelling = options.get("dialect")
        manifest = isinstance(document.value, dict) and "apiVersion" in document.value  # never a setting itself
        if spelling not in (None, "auto") or (not manifest and told_apart(document, document.form)[0] is not None):
            return [_check_parsed(document, **options)]
    elif not document.readable:
        return [_check_parsed(document, **options)]
    else:
        manifest = True
    from specctl.rules.embedded import inside, nothing

    found = inside(document, options)
    if not found and not document.source.endswith(_TREES):
        plain = of_any_ending(Document(document.source, document.text, sniff(document.text)))
        if isinstance(plain.value, dict) and told_apart(plain, plain.form)[0] is not None:
            return [_check_parsed(plain, **options)]
    if not found and (manifest or "\napiVersion:" in f"\n{document.text}"):
        return [nothing(document)]
    return found or [_check_parsed(document, **options)]


def _check_parsed(
    document: Document,
    *,
    engine: str | None = None,
    release: str | None = None,
    target: str | None = None,
    platform: str | None = None,
    dialect: str | None = None,
    **options: Any,
) -> Report:
    form = document.form
    filters = {key: options.pop(key) for key in ("select", "ignore") if key in options}
    around = Surroundings(target=target_of(target) if target else target, platform=platform, **options)
    return check_document(
        document, form, engine=engine or "auto", release=release, around=around, dialect=dialect or "auto", **filters
    )


def _words(tokens: list[str]) -> list[str]:
    """The words of a command line that was quoted as a whole; any other line as it is."""
    return words(tokens[0]) if len(tokens) == 1 and " " in tokens[0].strip() else tokens


def check_argv(
    tokens: list[str],
    *,
    kind: str = "command",
    engine: str | None = None,
    release: str | None = None,
    target: str | None = None,
    platform: str | None = None,
    **options: Any,
) -> Report:
    """The report on setting flags (`kind` `vllm`, `sglang`) or on an engine's own command line (`command`)."""
    options.pop("dialect", None)
    filters = {key: options.pop(key) for key in ("select", "ignore") if key in options}
    document = command_document(_words(tokens) if kind == "command" else tokens)
    tokens = document.value
    around = Surroundings(target=target_of(target) if target else target, platform=platform, **options)
    name = kind if kind in ENGINES else entry_of(tokens)[0]
    if name is None and engine is None:
        name = told_apart(document, "argv")[0]
    return check_document(
        document,
        "argv",
        engine=engine or name or "vllm",
        release=release,
        around=around,
        dialect=name or engine,
        **filters,
    )
