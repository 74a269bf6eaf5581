"""The form for people: message, snippet with carets, notes, help, summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from specctl.diagnostics.model import ADVICE, ERROR, WARNING, Diagnostic, Result, Span, Totals

MAX_WIDTH = 110
_ELSEWHERE = ("SPC012", "SPC015")  # the setting itself is not in the text
Paint = Callable[[str, str], str]

_ANSI = {ERROR: "1;31", WARNING: "1;33", ADVICE: "1;36", "dim": "2", "bold": "1", "good": "1;32"}


def plain_paint(_style: str, text: str) -> str:
    """Leaves text as it is."""
    return text


def colour_paint(style: str, text: str) -> str:
    """Wraps text in the terminal colour of `style`."""
    return f"\x1b[{_ANSI[style]}m{text}\x1b[0m"


def snippet(text: str, span: Span, paint: Paint = plain_paint, style: str = ERROR) -> list[str]:
    """The source line of `span` with a line of carets under it; long lines are cut to a window around the place."""
    lines = text.split("\n")
    if not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1].rstrip("\r").replace("\t", " ")
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    width = max(1, end - start)
    line, start, width = _window(line, start, width)
    number = str(span.line)
    bar = paint("dim", "|")
    gutter = " " * len(number)
    carets = " " * start + paint(style, "^" * width)
    return [f" {gutter} {bar}", f" {paint('dim', number)} {bar} {line}", f" {gutter} {bar} {carets}"]


def _window(line: str, start: int, width: int) -> tuple[str, int, int]:
    if len(line) <= MAX_WIDTH:
        return line, start, max(1, min(width, len(line) - start)) if start < len(line) else 1
    left = max(0, min(start - 30, len(line) - MAX_WIDTH))
    cut = line[left : left + MAX_WIDTH]
    head = "..." if left else ""
    tail = "..." if left + MAX_WIDTH < len(line) else ""
    shown = start - left + len(head)
    return head + cut + tail, shown, max(1, min(width, len(head) + len(cut) - shown))


def _block(found: Diagnostic, one: Result, paint: Paint) -> list[str]:
    lines = [f"{paint(found.severity, f'{found.severity}[{found.code}]')}: {paint('bold', found.message)}"]
    if found.span:
        lines.append(f"  --> {one.source}:{found.span.line}:{found.span.column}")
        lines += snippet(one.text, found.span, paint, found.severity)
    else:
        lines.append(f"  --> {one.source}")
    lines += [f"  note: {note}" for note in found.notes]
    if found.help:
        lines.append(f"  {paint('good', 'help')}: {found.help}")
    return lines


def _verdict(one: Result, paint: Paint) -> str:
    words = {
        "accepts": ("good", "accepts this setting"),
        "refuses": (ERROR, "refuses this setting"),
        "fails-at-start": (ERROR, "takes this setting, then fails when it starts"),
    }
    style, text = words[one.verdict]
    if one.verdict == "accepts" and one.spec is None:
        text = "accepts this; no speculation was read from it"
        if any(found.code in _ELSEWHERE for found in one.diagnostics):
            style, text = WARNING, "is not judged: the setting hangs on what stands elsewhere"
    if one.engine == "unknown":
        return f"{one.source}: {paint(ERROR, 'no setting could be read')}"
    name = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "specctl": "specctl"}.get(
        one.engine, one.engine
    )
    return f"{one.source}: {name} {one.release} {paint(style, text)}"


def pieces(results: Iterable[Result | None], *, colour: bool = False, quiet: bool = False) -> Iterator[str]:
    """All results as text, piece by piece, ending in a newline; None stands for a file without a setting.

    `quiet` leaves out results without any diagnostic."""
    paint = colour_paint if colour else plain_paint
    totals = Totals()
    for one in totals.counted(results):
        for found in one.diagnostics:
            yield "\n".join(_block(found, one, paint)) + "\n\n"
        if not quiet or one.diagnostics:
            yield _closing(one, paint) + "\n\n"
    yield _summary(totals) + "\n"


def render(results: Iterable[Result | None], *, colour: bool = False, quiet: bool = False) -> str:
    """The pieces in one text."""
    return "".join(pieces(results, colour=colour, quiet=quiet))


def _closing(one: Result, paint: Paint) -> str:
    lines = [_verdict(one, paint)]
    if one.effective:
        shown = ", ".join(f"{key}={_short(value)}" for key, value in one.effective.items() if value is not None)
        lines.append(paint("dim", f"  effective: {shown}"))
    lines += [paint("dim", f"  assumed: {text}") for text in one.assumptions]
    if one.skipped:
        by_need: dict[str, list[str]] = {}
        for each in one.skipped:
            by_need.setdefault(" and ".join(each.needs), []).append(each.code)
        for need, codes in by_need.items():
            lines.append(paint("dim", f"  not checked without the {need}: {', '.join(codes)}"))
    return "\n".join(lines)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _summary(totals: Totals) -> str:
    errors, warnings, advice = (totals.found[kind] for kind in (ERROR, WARNING, ADVICE))
    text = f"{_plural(totals.results, 'setting')} checked: {_plural(errors, 'error')}, {_plural(warnings, 'warning')}"
    if advice:
        text += f", {advice} advice"
    if totals.skipped_files:
        text += f"; {_plural(totals.skipped_files, 'file')} without a speculative setting"
    return text
