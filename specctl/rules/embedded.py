"""Judges the command lines and settings inside other files, and puts every place back into the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from specctl.diagnostics import Diagnostic, Span
from specctl.dialects.foreign import title
from specctl.dialects.reading import Finding, Reading, Surroundings
from specctl.errors import UsageError
from specctl.rules.checker import check_document, known_release, mixed, read_document
from specctl.rules.judge import judge
from specctl.rules.report import Report
from specctl.source import Document, read_yaml
from specctl.source.command import command_document
from specctl.source.extract import Embedded, embedded, masked
from specctl.source.flags import owner
from specctl.source.mapped import Mapped
from specctl.source.shell import MASK, Word
from specctl.source.yaml_marks import fill

_LIKE = re.compile(r"-+(?:spec[-_]|specul)")  # a misspelled flag of speculation
_MASKS = re.compile(f"{MASK}+")


def inside(document: Document, options: dict[str, Any]) -> list[Report]:
    """The reports on what a file that is something else holds; one with SPC013 where its commands set no speculation,
    none where there is neither command nor setting."""
    found = embedded(document)
    return (list(_reports(document, found, options)) or [nothing(document, found)]) if found else []


def nothing(document: Document, found: Sequence[Embedded] = ()) -> Report:
    """The report on a file without a setting."""
    reading = Reading("unknown", "unknown", "", document, Surroundings(), blocked=True)
    starts = sorted({title(each.engine) for each in found if each.engine})
    what = f"it starts {' and '.join(starts)} without one" if starts else "it starts none of the engines"
    help_text = "name a file that holds the setting, or give the command line behind --"
    reading.say(Finding("SPC013", f"this holds no setting of speculation that specctl knows: {what}", (), help_text))
    return judge(reading)


def _reports(document: Document, found: list[Embedded], options: dict[str, Any]) -> Iterator[Report]:
    for each in found:
        if each.node is not None:
            yield _of_node(document, each, options)
        elif each.setting is not None:
            yield _of_setting(document, each.setting, dict(options))
        elif _speculates(each):
            yield _of_command(document, each, dict(options))


def _speculates(each: Embedded) -> bool:
    """Whether a command has a flag of speculation, or a file that may hold one."""
    names = [word.text.split("=", 1)[0] for word in each.words]
    files = ("--config", "--extra_llm_api_options")
    return any(owner(word.text) or _LIKE.match(word.text) for word in each.words) or (
        each.engine == "trtllm" and any(name in files for name in names)
    )


def _around(options: dict[str, Any], env: dict[str, str]) -> Surroundings:
    return Surroundings(target=options.get("target"), platform=options.get("platform"), env=env, elsewhere=True)


def _filters(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in ("select", "ignore") if key in options}


def _of_setting(document: Document, setting: Mapped, options: dict[str, Any]) -> Report:
    inner = read_yaml(Document(document.source, setting.text, "yaml"))
    try:
        report = check_document(
            inner,
            "yaml",
            engine=options.get("engine") or "auto",
            release=options.get("release"),
            around=_around(options, {}),
            dialect=options.get("dialect") or "auto",
            **_filters(options),
        )
    except UsageError as error:
        report = mixed(inner, error.message)
    return _placed(report, document, inner.text, list(setting.at))


def _of_node(document: Document, each: Embedded, options: dict[str, Any]) -> Report:
    """The report on a mapping below other keys; its places are those of the whole text."""
    within = each.within or Mapped.whole(masked(document.text))
    inner = fill(Document(document.source, within.text, "yaml"), each.node)
    told = dict(options)
    engine, dialect = told.get("engine") or "auto", told.get("dialect") or each.engine or "auto"
    try:
        reading = read_document(
            inner, each.form, engine=engine, release=told.get("release"), around=_around(told, {}), dialect=dialect
        )
    except UsageError as error:
        report = mixed(inner, error.message)
    else:
        reading.findings = [found for found in reading.findings if not _of_another(found, reading)]
        report = judge(reading, **_filters(told))
    return _placed(report, document, inner.text, list(within.at))


def _of_another(found: Finding, reading: Reading) -> bool:
    """Whether a finding is about a name that the engine does not know and that has nothing to do with speculation."""
    if found.code not in ("SPC005", "SPC007", "SPC008") or len(found.route) != 1:
        return False
    part = found.route[0]
    value = reading.document.value
    word = str(value[part]) if isinstance(part, int) and isinstance(value, list) else str(part)
    return owner(word) is None and "spec" not in word.lower()


def _of_command(document: Document, each: Embedded, options: dict[str, Any]) -> Report:
    tokens = [word.text for word in each.words]
    inner = command_document(tokens, document.source)
    text, places = inner.text, _places(inner, each.words)
    around = _around(options, dict(each.env))
    open_values = list(_unresolved(document, each.words))
    engine = options.get("engine") or each.engine or "vllm"
    if open_values:
        release = known_release(engine, options.get("release"))
        reading = Reading(each.engine or engine, engine, release, inner, around, blocked=True)
        reading.findings += open_values
        report = judge(reading, **_filters(options))
    else:
        own = engine == (each.engine or engine)
        wanted = options.get("release") or (each.release if own else None)
        reading = read_document(
            inner, "argv", engine=engine, release=wanted, around=around, dialect=each.engine or engine
        )
        unknown = {(at,) for at, word in enumerate(each.words) if word.unknown}
        reading.findings = [
            found
            for found in reading.findings
            if not (found.route in unknown and found.code in ("SPC006", "SPC007", "SPC008"))
            and not (each.foreign and _of_another(found, reading))
        ]
        report = judge(reading, **_filters(options))
    report = _without_own_files(document, report)
    named = tuple(dict.fromkeys(_name(document, word, name) for word in each.words for name in word.unknown))
    if named and not open_values:
        note = f"{', '.join(named)}: the value is not in this file, so what hangs on it was not checked"
        report = replace(report, result=replace(report.result, assumptions=(*report.result.assumptions, note)))
    in_a_file = reading.document is not inner  # the file that the command names is here, and was read
    return report if in_a_file else _placed(report, document, text, places)


def _without_own_files(document: Document, report: Report) -> Report:
    """Leave out that a file is not here where the same text also makes it: a ConfigMap, a here-document."""
    kept = []
    for found in report.diagnostics:
        name = found.message.split(" does not exist", 1)[0].rsplit("/", 1)[-1]
        if found.code != "SPC012" or document.text.count(name) < 2:
            kept.append(found)
    return replace(report, result=replace(report.result, diagnostics=tuple(kept)))


def _unresolved(document: Document, words: tuple[Word, ...]) -> Iterator[Finding]:
    """Values of speculation that hang on something outside the file and cannot be read without it."""
    for at, word in enumerate(words):
        flag = owner(words[at - 1].text) if at and "=" not in words[at - 1].text else None
        inline = owner(word.text) if "=" in word.text else None
        if not word.unknown or not (flag or inline):
            continue
        name = (flag or inline or ("", ""))[1]
        value = word.text.split("=", 1)[1] if inline and not flag else word.text
        if not _is_text(name, value):
            what = ", ".join(dict.fromkeys(_name(document, word, each) for each in word.unknown))
            yield Finding(
                "SPC015",
                f"{name} hangs on {what}, which this file does not set to one value; the setting was not checked",
                (at,),
                help="check the finished command: specctl validate-config -- COMMAND, with the value in its place",
            )


def _is_text(flag: str, value: str) -> bool:
    """Whether a flag takes any text, so that an open value in it does not hide the rest of the setting."""
    if flag == "--speculative-config":
        try:
            return isinstance(json.loads(value), dict)
        except (ValueError, RecursionError):
            return False
    words = ("path", "model", "revision", "file", "token-map", "corpus")
    return any(flag.endswith(word) for word in words)


def _name(document: Document, word: Word, name: str) -> str:
    """A variable as it is written, its first line; of a template mark, the mark itself."""
    if MASK not in word.text:
        return name if "\n" not in name else name.split("\n", 1)[0] + " ..."
    start = word.text.index(MASK)
    end = start
    while end < len(word.text) and word.text[end] == MASK:
        end += 1
    return document.text[word.mapped.at[start] : word.mapped.at[end - 1] + 1]


def _places(inner: Document, words: tuple[Word, ...]) -> list[int]:
    """For each character of the shown command line, the offset in the file; blanks and quotes take a neighbour's."""
    places: list[int] = []
    for number, word in enumerate(words):
        span = inner.values[(number,)]
        start = offset_of(inner.text, span.line, span.column)
        before = word.mapped.at[0] if word.text else (places[-1] if places else 0)
        places += [before] * (start - len(places)) + list(word.mapped.at)
    return places + [places[-1] if places else 0] * (len(inner.text) - len(places))


def offset_of(text: str, line: int, column: int) -> int:
    """The offset of a line and column that count from 1."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at + column - 1


def _placed(report: Report, document: Document, text: str, places: list[int]) -> Report:
    """The report with its places in the file itself; fixes are dropped, for their routes mean the inner setting."""

    def moved(span: Span | None) -> Span | None:
        if span is None or not places:
            return None
        start = min(offset_of(text, span.line, span.column), len(places) - 1)
        end = min(max(offset_of(text, span.end_line, span.end_column) - 1, start), len(places) - 1)
        first, last = places[start], max(places[start], places[end])
        return Span.of(document.text, first, last + 1)

    def placed(found: Diagnostic) -> Diagnostic:
        help_text = None if found.help is None else _unmasked(found.help)
        return replace(found, message=_unmasked(found.message), help=help_text, span=moved(found.span), fix=None)

    diagnostics = tuple(placed(found) for found in report.diagnostics)
    effective = {key: _unmasked(value) for key, value in report.effective.items()}
    spec = None if report.spec is None else {key: _unmasked(value) for key, value in report.spec.items()}
    result = replace(report.result, text=document.text, diagnostics=diagnostics, effective=effective, spec=spec)
    return replace(report, result=result)


def _unmasked(value: Any) -> Any:
    return _MASKS.sub("{{...}}", value) if isinstance(value, str) else value
