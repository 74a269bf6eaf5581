"""`specctl presets`: list, show and check the settings that come with specctl."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.main import Group
from specctl.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from specctl.presets import Outcome, Preset
    from specctl.rules.convert import Converted

app = typer.Typer(
    cls=Group,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="List, show and check the presets: settings that come with specctl, for --spec NAME.",
)
Format = Annotated[str, typer.Option("--format", help="text or json.")]


@app.command("list", help="List the presets.")
def show_list(
    target: Annotated[str | None, typer.Option(help="Only targets that hold this text.")] = None,
    engine: Annotated[str | None, typer.Option(help="Only those that vllm, sglang, trtllm or specctl can run.")] = None,
    method: Annotated[str | None, typer.Option(help="Only this method, such as eagle3.")] = None,
    format: Format = "text",
) -> int:
    """One line a preset."""
    from specctl.presets import every

    _known(format, engine, method)
    found = [
        preset
        for preset in every()
        if (target is None or target.lower() in (preset.config.target or "").lower())
        and (engine is None or engine in preset.engines)
        and (method is None or method == preset.config.method.name)
    ]
    if format == "json":
        _print_json({"format_version": 1, "presets": [_facts(preset) for preset in found]})
        return EXIT_OK
    if found:
        _table(found)
    print(f"{len(found)} preset{'s' * (len(found) != 1)}", file=sys.stderr)
    return EXIT_OK


@app.command("show", help="Print a preset, and what it becomes on each engine that can run it.")
def show_one(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The preset's name.")],
    to: Annotated[str | None, typer.Option(help="This engine alone: vllm, sglang or trtllm.")] = None,
    format: Format = "text",
) -> int:
    """The file as it is, then one part an engine release."""
    from specctl.presets import conversions, find

    _known(format, to, None)
    preset = find(name)
    if to is not None and to not in {engine for engine, _ in preset.releases()}:
        raise UsageError(f"the preset {name} is not for {to}", help=f"it names {', '.join(preset.engines)}")
    parts = list(conversions(preset, to))
    if format == "json":
        _print_json({"format_version": 1} | _facts(preset) | {"conversions": [_conversion(part) for part in parts]})
        return EXIT_OK
    sys.stdout.write(preset.text)
    for part in parts:
        _print_part(part)
    return EXIT_OK


@app.command("check", help="Read, validate and convert presets; status 1 when one of them fails.")
def check_all(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME|FILE]...", help="Presets, or files of your own. [all presets]")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    format: Format = "text",
) -> int:
    """One line a preset; diagnostics of those that fail."""
    from specctl import presets

    _known(format, None, None)
    outcomes = [presets.check(name) for name in names or presets.names()]
    failed = [outcome for outcome in outcomes if not outcome.holds(strict=strict)]
    if format == "json":
        _print_json({"format_version": 1, "presets": [_outcome(each, strict) for each in outcomes]})
    else:
        for outcome in outcomes:
            _print_outcome(outcome, strict)
        print(f"{len(outcomes)} checked, {len(failed)} failed")
    return EXIT_FINDINGS if failed else EXIT_OK


def _known(format: str, engine: str | None, method: str | None) -> None:
    from specctl.dialects.own_schema import LIMITED
    from specctl.spec import METHODS

    for option, value, words in (
        ("--format", format, ("text", "json")),
        ("engine", engine, LIMITED),
        ("method", method, tuple(METHODS)),
    ):
        if value is not None and value not in words:
            import difflib

            near = difflib.get_close_matches(value, words, n=1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(words)}"
            raise UsageError(f"unknown {option} {value!r}", help=hint)


def _table(presets: Iterable[Preset]) -> None:
    from specctl.presets import engines_text

    rows = [("name", "target", "method", "k", "engines", "published best")]
    for preset in presets:
        spec = preset.config
        k = str(spec.num_speculative_tokens or "-")
        cells = (preset.name, spec.target or "any", spec.method.name, k, engines_text(preset))
        rows.append((*cells, str(preset.best() or "-")))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _facts(preset: Preset) -> dict[str, Any]:
    spec, best = preset.config, preset.best()
    return {
        "name": preset.name,
        "target": spec.target,
        "method": spec.method.name,
        "model": spec.model,
        "num_speculative_tokens": spec.num_speculative_tokens,
        "engines": dict(preset.engines),
        "published": preset.published,
        "published_best": None if best is None else {"k": best.k, "dataset": best.dataset, _kind(best): best.value},
        "source": spec.about.get("source"),
        "advice": spec.about.get("advice"),
        "spec": spec.as_dict(),
    }


def _kind(best: Any) -> str:
    return "acceptance_length" if best.length else "acceptance_rate"


def _conversion(part: Converted) -> dict[str, Any]:
    from specctl.diagnostics.as_json import diagnostic

    result = part.report.result
    return {
        "engine": result.engine,
        "release": part.release,
        "output": part.output,
        "text": part.text,
        "diagnostics": [diagnostic(each) for each in part.report.diagnostics],
    }


def _print_part(part: Converted) -> None:
    from specctl.dialects.foreign import title

    print(f"\n# {title(part.report.engine)} {part.release}")
    for each in part.report.diagnostics:
        print(f"# {each.severity}: {each.message}" + (f"; {each.help}" if each.help else ""))
    sys.stdout.write(part.text)


def _outcome(outcome: Outcome, strict: bool) -> dict[str, Any]:
    from specctl.diagnostics.as_json import diagnostic

    return {
        "name": outcome.name,
        "holds": outcome.holds(strict=strict),
        "releases": [{"engine": engine, "release": release} for engine, release in outcome.releases],
        "faults": list(outcome.faults),
        "diagnostics": [diagnostic(each) for result in outcome.results for each in result.diagnostics],
    }


def _print_outcome(outcome: Outcome, strict: bool) -> None:
    from specctl.diagnostics import as_text
    from specctl.dialects.foreign import title

    where = ", ".join(f"{title(engine)} {release}" for engine, release in outcome.releases) or "specctl"
    holds = outcome.holds(strict=strict)
    print(f"{'ok  ' if holds else 'FAIL'}  {outcome.name}  ({where})")
    for fault in outcome.faults:
        print(f"error: {fault}")
    if not holds:
        sys.stdout.write(as_text.render(list(outcome.results), colour=False, quiet=True))


def _print_json(value: dict[str, Any]) -> None:
    from specctl.diagnostics.as_json import plain

    print(json.dumps(plain(value), indent=1, ensure_ascii=False))
