"""`load` and `convert` of the Python interface."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeGuard, Unpack

from specctl.diagnostics import ERROR
from specctl.dialects.convert import lost_in, native_method, read_back
from specctl.dialects.dialect import DIALECTS
from specctl.dialects.foreign import title
from specctl.dialects.limits import outside_limits
from specctl.dialects.reading import Finding, Surroundings
from specctl.dialects.trtllm_move import moved_file
from specctl.errors import SpecctlError
from specctl.rules.checker import ENGINES, CheckOptions, Source, check
from specctl.rules.judge import judge
from specctl.rules.report import MISSING_CODES, Report
from specctl.spec import SpecDecodeConfig
from specctl.spec.release import known


@dataclass(frozen=True)
class Converted:
    """What `convert` returns: the native form (`output`), the same as text, and what was lost or changed on the way."""

    output: Any
    text: str
    report: Report
    release: str

    def __str__(self) -> str:
        return self.text


def load(source: Source, **options: Unpack[CheckOptions]) -> SpecDecodeConfig:
    """Read a setting into its canonical spec; `options` are those of `check`. Raises `SpecctlError` where it has an
    error.
    """
    report = check(source, **options)
    if report.config is None or not report.valid:
        first = report.diagnostics[0].message if report.diagnostics else "the setting leaves speculation off"
        raise SpecctlError(f"the setting cannot be used: {first}")
    return report.config


def convert(
    source: Source | SpecDecodeConfig | Report,
    to: str,
    *,
    to_release: str | None = None,
    **options: Unpack[CheckOptions],
) -> Converted:
    """Write a setting in the spelling of `to` (`vllm`, `sglang`, `trtllm`, `specctl`); losses are SPC4xx diagnostics
    of the report.

    `source` may be a `SpecDecodeConfig`, a `Report`, or anything `check` takes. Raises `SpecctlError` where nothing
    usable was read."""
    from specctl.errors import UsageError

    if to not in ENGINES:
        raise UsageError(f"unknown spelling {to!r}", help=f"one of {', '.join(ENGINES)}")
    report = source if isinstance(source, Report) else None
    if not isinstance(source, (Report, SpecDecodeConfig)):
        report = check(source, **options)
    spec = source if isinstance(source, SpecDecodeConfig) else report.config if report else None
    if spec is None:
        raise SpecctlError("there is nothing to convert: the setting could not be read, or leaves speculation off")
    try:
        release = known(to, to_release)
    except ValueError as error:
        raise UsageError(str(error)) from None
    converted = _convert(spec, to, release, report, outside_limits(spec, to, to_release or release))
    if to_release is None or to_release.strip().removeprefix("v") == release:
        return converted
    note = f"release {to_release} of {title(to)} is not known; this is written for {release}"
    result = converted.report.result
    result = replace(result, assumptions=(*result.assumptions, note))
    return replace(converted, report=replace(converted.report, result=result))


def _convert(spec: SpecDecodeConfig, to: str, release: str, report: Report | None, losses: list[Finding]) -> Converted:
    from specctl.dialects.render import render
    from specctl.rules.losses import with_losses

    changed = lost_in(spec, to, release)
    if report is not None and report.result.dialect == to == "sglang":  # the words mean what they meant
        changed = [found for found in changed if found.code != "SPC404"]
    losses = [*losses, *changed]
    if native_method(spec, to, release) is None:
        return Converted(None, "", with_losses(report, spec, losses, to, release), release)
    output = DIALECTS[to].write(spec, release)
    text = render(output, to)
    judged = judge(read_back(spec, to, release, Surroundings()))
    file = (
        moved_file(report.result.text, report.release, spec, release) if to == "trtllm" and _is_file(report) else None
    )
    if file is not None:  # the rest of the file comes along, and is judged with it
        output, text = file
        judged = check(text, engine=to, release=release, form="yaml")
    losses += _refused(judged, to, release)
    return Converted(output, text, with_losses(report, spec, losses, to, release), release)


def _is_file(report: Report | None) -> TypeGuard[Report]:
    """Whether a setting came in a file of TensorRT-LLM, which holds other arguments, too."""
    return report is not None and report.result.dialect == "trtllm"


def _refused(judged: Report, to: str, release: str) -> list[Finding]:
    """What the other engine itself would refuse in the converted setting, or take and not follow."""
    return [
        Finding(each.code, f"{title(to)} {release}: {each.message}", help=each.help, severity=each.severity)
        for each in judged.diagnostics
        if (each.severity == ERROR or each.code in ("SPC102", "SPC158"))
        and each.code not in MISSING_CODES
        and not each.code.startswith("SPC30")
    ]
