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
        left = [] if kept is not None or report.result.dialect == to else _left_behind(report)
        if left:
            told = f"{len(left)} other key{'s' * (len(left) != 1)} of {report.source}: {', '.join(left)}"
            print(f"note: only the setting of speculation is converted; left behind: {told}", file=sys.stderr)
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


def _left_behind(report: Report) -> list[str]:
    """Keys at the root of an engine's settings file that set no speculation and not the target."""
    import yaml

    from specctl.source.flags import owner

    if report.source.startswith("<") or not report.result.text or report.result.dialect == "specctl":
        return []
    try:
        root = yaml.safe_load(report.result.text)
    except yaml.YAMLError:
        return []
    keys = [str(key) for key in root] if isinstance(root, dict) else []
    own = ("speculative_config", "decoding_type", "model", "model_path", "model_tag")
    if not any(owner(f"--{key}") or key.replace("-", "_") in own[:2] for key in keys):
        return []  # the setting itself, without a file of the engine around it
    return [key for key in keys if not owner(f"--{key}") and key.replace("-", "_") not in own]


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
