"""`specctl convert`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.settings import Settings
from specctl.errors import MissingError, UsageError

if TYPE_CHECKING:
    from specctl.rules.report import Report


def command(
    ctx: typer.Context,
    to: Annotated[str, typer.Option(help="The spelling to write: vllm, sglang, trtllm or specctl.")],
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The file to convert; - is standard input.")
    ] = None,
    to_release: Annotated[str | None, typer.Option(help="The release to write for.")] = None,
    engine: Annotated[str | None, typer.Option(help="Whose setting the source is, where it cannot be told.")] = None,
    release: Annotated[str | None, typer.Option(help="The release of the source.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The model that is served; SGLang's own numbers hang on it.")
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="The spelling of the file, where it cannot be told.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
) -> int:
    """Write a setting in another engine's spelling. Losses are diagnostics on standard error."""
    from specctl.rules.convert import convert

    options = {"engine": engine, "release": release, "target": target, "dialect": dialect}
    report = _report(ctx.obj, file, {**options, "elsewhere": True})  # a spelling is no matter of this machine's files
    if report.config is None:
        _say(report)
        return report.exit_code() or 1
    converted = convert(report, to, to_release=to_release)
    kept = _unchanged(report, to, converted.release)
    text = kept if kept is not None else converted.text
    _say(converted.report)
    status = converted.report.exit_code()
    if status == 0:
        _write(text, output)
    return status


def _report(settings: Settings, file: str | None, options: dict[str, Any]) -> Report:
    from specctl.rules.checker import check_path

    given = settings.candidates()
    if len(given) + (file is not None) != 1:
        raise UsageError(
            f"{len(given) + (file is not None)} settings are given; exactly one is converted",
            help="give one file, or the flags of one engine",
        )
    if file is not None:
        return check_path(file, **options)
    return settings.check(given[0], **options)


def _unchanged(report: Report, to: str, release: str) -> str | None:
    """The source's own text where nothing changes, so that comments and order stay."""
    same = report.result.dialect == to and report.release == release and not report.source.startswith("<")
    return report.result.text if same and report.result.text else None


def _say(report: Report) -> None:
    from specctl.diagnostics import as_text

    if report.diagnostics:
        sys.stderr.write(as_text.render([report.result], colour=sys.stderr.isatty(), quiet=True))
    for note in report.result.assumptions:
        if note.startswith("release "):
            print(f"note: {note}", file=sys.stderr)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MissingError(f"{output} cannot be written: {error.strerror}") from None
