"""Runs the rules over a reading and makes the report."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from specctl.diagnostics import ADVICE, ERROR, Diagnostic, Fix, Result, Route, Skipped
from specctl.dialects.reading import FAILS, REFUSES, Change, Finding, Reading, shown
from specctl.rules.assumptions import assumed
from specctl.rules.catalog import Rule, rules
from specctl.rules.report import Report
from specctl.source.document import Problem
from specctl.source.remarks import Remarks, remarks_of

PLATFORM = "platform"  # a rule that needs it has nothing to say of a GPU that is not named


def judge(reading: Reading, *, select: Collection[str] = (), ignore: Collection[str] = ()) -> Report:
    """The report on one reading; `select` and `ignore` hold codes or their beginnings (`SPC2`)."""
    findings = list(reading.findings)
    skipped: list[Skipped] = []
    if not reading.blocked:
        findings += [_of_change(reading, change) for change in reading.changes]
        _run(reading, findings, skipped)
        findings += _unsaid(reading.fallback, findings)
    diagnostics = [_of_problem(problem) for problem in reading.document.problems]
    diagnostics += [_of_finding(reading, finding) for finding in findings]
    verdict = _verdict(diagnostics, findings)
    remarks = remarks_of(reading.document.text) if reading.document.form == "yaml" else Remarks()
    diagnostics = [
        each for each in diagnostics if not remarks.silence(each.code, each.span.line if each.span else None)
    ]
    kept = _kept(diagnostics, select, ignore)
    spec = reading.spec
    result = Result(
        source=reading.document.source,
        text=reading.document.text,
        dialect=reading.dialect,
        engine=reading.engine,
        release=reading.release,
        verdict=verdict,
        spec=spec.as_dict() if spec is not None else None,
        effective={} if verdict == REFUSES else dict(reading.effective),
        diagnostics=kept,
        skipped=tuple(each for each in skipped if _wanted(each.code, select, ignore)),
        assumptions=(*reading.notes.get("assumptions", ()), *assumed(reading)),
    )
    return Report(result, spec)


def _unsaid(fallback: list[Finding], findings: list[Finding]) -> list[Finding]:
    """The findings of the schema at whose place, or around or inside of it, no rule has found a fault."""
    said = [finding.route for finding in findings if finding.severity != ADVICE]

    def known(route: Route) -> bool:
        return any(
            other == route or (other and (other[: len(route)] == route or route[: len(other)] == other))
            for other in said
        )

    return [finding for finding in fallback if not known(finding.route)]


def _kept(diagnostics: list[Diagnostic], select: Collection[str], ignore: Collection[str]) -> tuple[Diagnostic, ...]:
    """The wanted ones in order, none of them twice."""
    seen = {(each.code, each.message, each.span): each for each in diagnostics if _wanted(each.code, select, ignore)}
    return tuple(sorted(seen.values(), key=lambda each: each.order))


def _wanted(code: str, select: Collection[str], ignore: Collection[str]) -> bool:
    chosen = not select or any(code.startswith(each) for each in select)
    return chosen and not any(code.startswith(each) for each in ignore)


def _run(reading: Reading, findings: list[Finding], skipped: list[Skipped]) -> None:
    for rule in rules().values():
        if not rule.judges or (rule.engines and reading.engine not in rule.engines):
            continue
        if PLATFORM in rule.needs and reading.around.platform is None:  # told before its file is imported
            continue
        if not rule.applies(reading):
            continue
        missing = tuple(need for need in rule.needs if not _has(reading, need))
        if missing:
            skipped.append(Skipped(rule.code, missing))
            continue
        findings += rule.check(reading)


def _has(reading: Reading, need: str) -> bool:
    if need == "target":
        return reading.around.target_facts is not None
    if need == PLATFORM:
        return True
    return reading.notes.get("draft") is not None


def _verdict(diagnostics: list[Diagnostic], findings: list[Finding]) -> str:
    errors = [each for each in diagnostics if each.severity == ERROR]
    if not errors:
        return "accepts"
    late = {(finding.code, finding.message) for finding in findings if finding.stage == FAILS}
    return FAILS if all((each.code, each.message) in late for each in errors) else REFUSES


def _rule(code: str) -> Rule | None:
    return rules().get(code)


def _of_problem(problem: Problem) -> Diagnostic:
    rule = _rule(problem.code)
    return Diagnostic(
        problem.code,
        rule.name if rule else "",
        rule.severity if rule else ERROR,
        problem.message,
        problem.route,
        problem.span,
        problem.help,
        problem.notes,
        problem.fix,
    )


def _of_finding(reading: Reading, finding: Finding) -> Diagnostic:
    rule = _rule(finding.code)
    severity = finding.severity or (rule.severity if rule else ERROR)
    span = reading.document.span(finding.route, key=finding.at_key)
    return Diagnostic(
        finding.code,
        rule.name if rule else "",
        severity,
        finding.message,
        finding.route,
        span,
        finding.help,
        finding.notes,
        _plain_fix(reading.document.value, finding.fix),
    )


def _plain_fix(value: Any, fix: Fix | None) -> Fix | None:
    """A fix as route and replacement alone: a renamed or removed key becomes a replacement of the object around it."""
    if fix is None or (fix.key is None and not fix.remove):
        return fix
    around = value
    try:
        for part in fix.route[:-1]:
            around = around[part]
    except (KeyError, IndexError, TypeError):
        return None
    if not isinstance(around, dict) or not fix.route or fix.route[-1] not in around:
        return None
    old = fix.route[-1]
    if fix.key is not None and fix.key in around:
        return None
    renamed = {
        fix.key if key == old and fix.key else key: item for key, item in around.items() if key != old or fix.key
    }
    return Fix(fix.route[:-1], renamed)


def _of_change(reading: Reading, change: Change) -> Finding:
    if change.old is None:
        text = f"{change.key} becomes {shown(change.new)}: {change.why}"
    elif change.new is None:
        text = f"{change.key} {shown(change.old)} is dropped: {change.why}"
    elif shown(change.old) == shown(change.new):
        text = f"{change.key}: {change.why}"
    else:
        text = f"{change.key} {shown(change.old)} becomes {shown(change.new)}: {change.why}"
    help_text = change.help or (
        f"write {shown(change.new)} to say what happens" if change.new is not None else "leave it out"
    )
    return Finding(change.code, text, reading.route(change.key), help=help_text)
