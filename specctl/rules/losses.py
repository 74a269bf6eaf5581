"""The report of a conversion: what was said about the source, and what was lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specctl.diagnostics import ERROR, Diagnostic, Result
from specctl.dialects.reading import Finding
from specctl.rules.catalog import rules
from specctl.rules.report import Report
from specctl.spec import SpecDecodeConfig

OWN = "specctl"
NOT_RUN_HERE = "SPC161"


def with_losses(
    report: Report | None, spec: SpecDecodeConfig, losses: Sequence[Finding], engine: str, release: str
) -> Report:
    """A report for the conversion: the source's own diagnostics, then the losses."""
    lost = tuple(_diagnostic(finding) for finding in losses)
    if report is None:
        base = Result(spec.origin.source, "", spec.origin.dialect, engine, release, "accepts", spec.as_dict(), {})
    else:
        base = report.result if engine == OWN else _without_runtime(report.result)
    diagnostics = (*base.diagnostics, *lost)
    if any(each.severity == ERROR for each in base.diagnostics):
        return Report(replace(base, diagnostics=diagnostics), spec)
    # The setting is sound; what follows is about the engine that it is written for.
    verdict = "refuses" if any(each.severity == ERROR for each in lost) else "accepts"
    base = replace(base, engine=engine, release=release, effective={}, skipped=())
    return Report(replace(base, diagnostics=diagnostics, verdict=verdict), spec)


def _without_runtime(result: Result) -> Result:
    """A setting that is written for another engine need not run on specctl's own."""
    kept = tuple(each for each in result.diagnostics if each.code != NOT_RUN_HERE)
    if len(kept) == len(result.diagnostics):
        return result
    bad = any(each.severity == ERROR for each in kept)
    return replace(result, diagnostics=kept, verdict=result.verdict if bad else "accepts")


def _diagnostic(finding: Finding) -> Diagnostic:
    rule = rules().get(finding.code)
    return Diagnostic(
        finding.code,
        rule.name if rule else "",
        finding.severity or (rule.severity if rule else ERROR),
        finding.message,
        help=finding.help,
        notes=finding.notes,
    )
