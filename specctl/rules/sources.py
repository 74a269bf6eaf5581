"""What `check` was given, as a document whose value is read: text, bytes, words, a mapping, a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specctl.dialects.vllm import ROWS
from specctl.dialects.vllm_carriers import LLM_ARGUMENTS
from specctl.errors import UsageError
from specctl.source import Document, read_file, read_json, read_yaml, sniff
from specctl.source.command import command_document, entry_of
from specctl.source.document import Problem, from_bytes
from specctl.source.flags import owner

FORMS = ("auto", "json", "yaml", "argv", "python")
_JSON_TYPES = (str, bytes, bytearray, Mapping, list, tuple, Path, int, float, type(None))
_DEPTH = 60
_OUTER = frozenset(("speculative_config", "spec_method", "spec_model", "spec_tokens"))
_INNER = frozenset(("method", "model", "num_speculative_tokens"))


def usage(source: Any, form: str, options: Mapping[str, Any]) -> None:
    """Raises `UsageError` where `check` itself was called wrongly."""
    if form not in FORMS:
        raise UsageError(f"unknown form {form!r}", help=f"forms are {', '.join(FORMS)}")
    if not isinstance(source, _JSON_TYPES):
        kind = type(source).__name__
        raise UsageError(f"the source is of type {kind}; text, a mapping, a list of words or a Path was wanted")
    if form == "argv" and (isinstance(source, (Mapping, int, float)) or not _are_words(source)):
        raise UsageError("form='argv' takes a list of words, or a command line as text")
    for name in ("engine_args", "env", "host"):
        if not isinstance(options[name], (Mapping, type(None))):
            raise UsageError(f"{name} is {options[name]!r}; a mapping was wanted")
    for name in ("release", "platform"):
        if not isinstance(options[name], (str, type(None))):
            raise UsageError(f"{name} is {options[name]!r}; text was wanted")
    if not isinstance(options["target"], (str, Path, type(None))):
        raise UsageError(f"target is {options['target']!r}; a name or a path was wanted")


def _are_words(source: Any) -> bool:
    return not isinstance(source, (list, tuple)) or all(isinstance(each, str) for each in source)


def document_of(source: Any, form: str, engine: str) -> tuple[Document, str]:
    """The source as a document whose value is read, and its form.

    Raises `MissingError` for a `Path` that cannot be read."""
    if isinstance(source, Path):
        document = read_file(source)
        return _of_text(document, document.form if form == "auto" else form)
    if isinstance(source, (bytes, bytearray)):
        document = from_bytes("<bytes>", bytes(source))
        return _of_text(document, _form_of(document.text, engine) if form == "auto" else form)
    if isinstance(source, str):
        return _of_text(Document("<text>", source, "yaml"), _form_of(source, engine) if form == "auto" else form)
    if isinstance(source, (list, tuple)) and form in ("auto", "argv") and _are_words(source):
        return command_document(list(source)), "argv"
    if form == "argv":
        return command_document([]), "argv"
    return of_value(source), "python" if form == "python" or (form == "auto" and _is_kwargs(source, engine)) else "json"


def _form_of(text: str, engine: str) -> str:
    """The form of a text: a command line where it begins like one, else JSON or YAML."""
    first = text.strip()[:2000]
    if not first.startswith(("{", "[", '"', "---\n")):
        tokens = words(first)
        if tokens and (entry_of(tokens)[0] is not None or owner(tokens[0]) is not None):
            return "argv"
    return "yaml" if engine in ("trtllm", "specctl") else sniff(text)


def _of_text(document: Document, form: str) -> tuple[Document, str]:
    if not document.readable:
        return document, "json" if form == "argv" else form
    if form == "argv":
        tokens = words(document.text)
        return command_document(tokens, "<argv>" if document.source == "<text>" else document.source), form
    document.form = "json" if form == "python" else form
    return parsed(document, document.form), document.form


def words(text: str) -> list[str]:
    """The words of a command line, cut as a shell does it; several lines are one where they are continued."""
    from specctl.source.mapped import Mapped
    from specctl.source.shell import Shell

    return [word.text for word in Shell(Mapped.whole(text.strip())).command(0)[0]]


def parsed(document: Document, form: str) -> Document:
    """The document with its value read."""
    return read_json(document) if form == "json" else read_yaml(document)


def of_any_ending(document: Document) -> Document:
    """A file's text read as the JSON or YAML that it looks like. JSON that holds the engine's arguments around the
    setting is read as those."""
    parsed(document, document.form)
    value = document.value
    if document.form == "json" and isinstance(value, dict) and _OUTER & set(value):
        inner = value.get("speculative_config")
        if not (isinstance(inner, dict) and "decoding_type" in inner):
            document.form = "python"
    return document


def _is_kwargs(source: Any, engine: str) -> bool:
    """Whether a mapping holds the arguments of an engine rather than the setting itself."""
    if not isinstance(source, Mapping) or engine not in ("auto", "vllm"):
        return isinstance(source, Mapping) and engine == "sglang"
    keys = set(source)
    if keys & _OUTER or keys & _INNER:
        return bool(keys & _OUTER)
    return keys <= LLM_ARGUMENTS or bool(keys & (LLM_ARGUMENTS - {row.key for row in ROWS}))


def of_value(source: Any) -> Document:
    """A document for a Python value; its text is the value as JSON, so that places exist. Keys become text."""
    document = Document("<value>", "", "json")
    try:
        value = _with_text_keys(source, 0)
        document.text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        document.refuse(Problem("SPC011", f"the value cannot be read as a setting: {error}"))
        return document
    document = read_json(document)
    if document.readable:
        document.value = value
    return document


def _with_text_keys(value: Any, depth: int) -> Any:
    if depth > _DEPTH:
        raise ValueError("it is nested too deeply, or holds itself")
    if isinstance(value, Mapping):
        return {str(key): _with_text_keys(item, depth + 1) for key, item in value.items()}
    return [_with_text_keys(item, depth + 1) for item in value] if isinstance(value, list) else value
