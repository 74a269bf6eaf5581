"""`specctl validate-config`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from specctl.cli.settings import Settings
from specctl.errors import EXIT_FINDINGS, EXIT_MISSING, EXIT_OK, MissingError, UsageError

if TYPE_CHECKING:
    from specctl.diagnostics import Result
    from specctl.rules.report import Report
    from specctl.source import Document

FORMATS = ("text", "json", "sarif", "github")
ENDINGS = (".yaml", ".yml", ".json")
# Files that hold command lines; in a folder they count only where they start an engine with speculation.
SCRIPTS = (".sh", ".bash", ".service", ".mk", ".dockerfile", ".tpl", ".env", ".toml", ".hcl", ".nomad", ".tf")
SCRIPT_NAMES = ("Dockerfile", "Containerfile", "Makefile", "makefile", "justfile", "Procfile")
# A file without any of these words holds no setting; most files of a folder are passed over without being parsed.
MARKS = (b"specul", b"spec-", b"spec_", b"decoding_type", b"specctl", b"num_speculative")


def command(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE|FOLDER]...", help="Files and folders; - is standard input.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Whose rules apply: vllm, sglang, trtllm, specctl.")] = None,
    release: Annotated[
        str | None, typer.Option(help="The engine's release (default: the one printed in the output).")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The model that is served: folder, id, bundled name or preset.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="A GPU kind such as h100 or mi300, or cpu.")] = None,
    dialect: Annotated[str | None, typer.Option(help="The spelling of the files, where it cannot be told.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    select: Annotated[str, typer.Option(help="Only these codes, or beginnings of codes: SPC1,SPC203.")] = "",
    ignore: Annotated[str, typer.Option(help="Not these codes, or beginnings of codes.")] = "",
    format: Annotated[str, typer.Option(help="text, json, sarif or github.")] = "text",
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
) -> int:
    """Say what an engine will do with a setting, before it is started."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}", help=f"one of {', '.join(FORMATS)}")
    _known_engine(engine, dialect)
    if target is not None:
        from specctl.resources import resolve_model
        from specctl.rules.checker import target_of

        resolve_model(target_of(target))
    options: dict[str, Any] = {
        "engine": engine,
        "release": release,
        "target": target,
        "platform": platform,
        "dialect": dialect,
        "select": _codes("--select", select),
        "ignore": _codes("--ignore", ignore),
    }
    settings: Settings = ctx.obj
    if not settings and not paths:
        raise UsageError(
            "nothing to check", help="give a file, a folder, or a setting such as --speculative-config '{...}'"
        )
    codes: set[int] = set()

    def results() -> Iterator[Result | None]:
        """One result after the other, none of them kept: a folder may hold ten thousand."""
        for report in _reports(settings, paths or [], options):
            if report is not None:
                codes.add(report.exit_code(strict=strict))
            yield report.result if report else None

    _emit(results(), format, output, many=any(os.path.isdir(path) for path in paths or ()))
    return next((status for status in (EXIT_MISSING, EXIT_FINDINGS) if status in codes), EXIT_OK)


def _reports(settings: Settings, paths: list[str], options: dict[str, Any]) -> Iterator[Report | None]:
    for candidate in settings.candidates():
        yield settings.check(candidate, **options)
    for path in paths:
        if not path:
            raise UsageError("the name of a file is empty", help="is a variable of the shell unset?")
        yield from _of_path(path, options)


def _known_engine(engine: str | None, dialect: str | None) -> None:
    from specctl.rules.checker import ENGINES

    for name in (engine, dialect):
        if name is not None and name not in (*ENGINES, "auto"):
            raise UsageError(f"unknown engine {name!r}", help=f"engines are {', '.join(ENGINES)}")


def _codes(flag: str, text: str) -> tuple[str, ...]:
    from specctl.rules.catalog import rules

    found = tuple(code.strip().upper() for code in text.split(",") if code.strip())
    for code in found:
        if not any(known.startswith(code) for known in rules()):
            raise UsageError(f"{flag} {code}: no rule begins so", help="codes are SPC001 and so on, see docs/rules.md")
    return found


def _of_path(path: str, options: dict[str, Any]) -> Iterator[Report | None]:
    """The reports of a file, or of all files of a folder; None for a file of a folder without a setting."""
    from specctl.rules.checker import check_file, mixed, open_document

    if path == "-" or not Path(path).is_dir():
        yield from check_file(open_document(path), **options)
        return
    for file in _files(Path(path)):
        document = _candidate(file)
        script = not file.name.endswith(ENDINGS)
        if document is None:
            yield from () if script else (None,)
            continue
        try:
            reports = check_file(document, **options)
        except UsageError as error:
            yield mixed(document, error.message)
            continue
        nothing = any(each.code == "SPC013" for each in reports[0].diagnostics)
        yield from reports if not nothing else () if script else (None,)


def _candidate(file: Path) -> Document | None:
    from specctl.source.document import from_bytes

    try:
        data = file.read_bytes()
    except OSError as error:
        raise MissingError(f"{file} cannot be read: {error.strerror}") from None
    return from_bytes(str(file), data) if any(mark in data for mark in MARKS) else None


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            # Only regular files: a pipe would wait for ever, and a link may lead nowhere.
            wanted = name.endswith((*ENDINGS, *SCRIPTS)) or name.startswith(SCRIPT_NAMES)
            if wanted and not name.startswith(".") and os.path.isfile(os.path.join(root, name)):
                yield Path(root, name)


def _emit(results: Iterator[Result | None], format: str, output: Path | None, *, many: bool) -> None:
    """Writes once all is known: an error on the way leaves no half-written output behind."""
    import importlib

    renderer = importlib.import_module(f"specctl.diagnostics.as_{format}")
    extra: dict[str, object] = {}
    if format == "text":
        extra["colour"] = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    elif format == "sarif":
        from importlib import metadata

        extra["version"] = metadata.version("specctl")
    if format in ("json", "sarif") and output is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # JSON is UTF-8 in every locale
    with _buffer(many) as buffer:
        buffer.writelines(renderer.pieces(results, **extra))
        buffer.seek(0)
        if output is None:
            sys.stdout.writelines(buffer)
            return
        try:
            with output.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(buffer)
        except OSError as error:
            raise MissingError(f"{output} cannot be written: {error.strerror}") from None


def _buffer(many: bool) -> IO[str]:
    """A place for the text: memory, which a long run leaves for the disk after its first megabyte."""
    if not many:
        return StringIO(newline="")
    from tempfile import SpooledTemporaryFile

    options: dict[str, Any] = {"mode": "w+", "encoding": "utf-8", "errors": "surrogatepass", "newline": ""}
    return cast("IO[str]", SpooledTemporaryFile(max_size=1 << 20, **options))
