"""What happened to a JSON text on its way through shells, launchers and templates."""

from __future__ import annotations

import json
import re

from specctl.diagnostics import Fix

_CURLY = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u00ab\u00bb"), '"') | dict.fromkeys(
    map(ord, "\u2018\u2019\u201a\u201b"), "'"
)
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_][\w.-]*)(\s*:)")
_BARE_VALUE = re.compile(r"(:\s*)([A-Za-z_./][\w./@-]*)(\s*[,}])")
_ESCAPE = re.compile(r"\\([{}\[\]\",: ])")
_COMMENT = re.compile(r"(?m)(?<![:\"'])//[^\n]*|/\*.*?\*/|(?<=\s)#[^\n\"]*$", re.S)


_OFF = ("off", "none", "no", "false", "disable", "disabled", "nil", "0")


def _loads(text: str) -> str | None:
    """The text as compact JSON where it is a JSON object, else None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None


def repaired(text: str) -> tuple[str, str] | None:
    """What was done to the text, and the clean JSON, where one known kind of damage explains it; else None."""
    for reason, attempt in _attempts(text):
        clean = _loads(attempt)
        if clean is not None:
            return reason, clean
    return None


def _attempts(text: str) -> list[tuple[str, str]]:
    body = text.strip()
    quoted = re.sub(r"'([^'\"]*)'", r'"\1"', body)
    python = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", re.sub(r"\bNone\b", "null", quoted)))
    bare = _BARE_VALUE.sub(_quote_word, _BARE_KEY.sub(r'\1"\2"\3', body))
    return [
        ("typographic quotes stand where plain double quotes belong", body.translate(_CURLY)),
        ("the quotes around the whole value became part of it", body.strip("'")),
        ("shell escapes became part of the value: it was quoted twice", _ESCAPE.sub(r"\1", body)),
        ("doubled braces were left by a template", body.replace("{{", "{").replace("}}", "}")),
        ("this is the text of a Python dict (single quotes, True, None), not JSON", python),
        ("JSON knows no comments", _COMMENT.sub("", body)),
        ("the double quotes around keys and text were eaten by a shell", bare),
        ("the closing brace is missing", body + "}"),
        ("a comma stands before a closing brace or bracket", re.sub(r",(\s*[}\]])", r"\1", body)),
        ("key=value pairs stand where JSON belongs", _pairs(body)),
        ("a number carries a k, which only dotted keys may", re.sub(r"(:\s*\d+)[kKmM]\b", r"\1", body)),
    ]


def _quote_word(found: re.Match[str]) -> str:
    word = found.group(2)
    return found.group(0) if word in ("true", "false", "null") else f'{found.group(1)}"{word}"{found.group(3)}'


def _pairs(text: str) -> str:
    if not re.fullmatch(r"[\w.-]+=[^,=]+(,[\w.-]+=[^,=]+)*", text):
        return text
    items = []
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        items.append(f'"{key}": {value if re.fullmatch(r"-?[0-9.]+|true|false|null", value) else json.dumps(value)}')
    return "{" + ", ".join(items) + "}"


def explain_json(text: str, offset: int) -> tuple[str | None, tuple[str, ...], Fix | None]:
    """Help, notes and fix for a JSON text that did not parse at `offset`."""
    found = repaired(text)
    if found:
        reason, clean = found
        return f"{reason}; write {clean}", (), Fix((), clean)
    body = text.strip()
    if body.startswith(("'{", "{")) and body.count("{") > body.count("}"):
        return (
            "the value ends too early: a launcher may have split it at its blanks; quote it once as a whole",
            (),
            None,
        )
    if re.search(r"\{\{|\{%|\$\{|<[A-Z_]+>", body):
        return "template marks are left in the text; render the template first", (), None
    if re.fullmatch(r"@?[\w./~-]+\.(json|ya?ml)", body):
        return "this flag takes the JSON text itself, not the name of a file", (), None
    if body.lower() in _OFF:
        return "speculation is off without this setting: leave it out, or write null", (), None
    if re.fullmatch(r"\[?[\w-]+\]?", body):
        return 'a JSON object was wanted, such as {"method": "ngram", "num_speculative_tokens": 4}', (), None
    if offset >= len(text.rstrip()):
        return "the text ends too early", (), None
    return None, (), None
