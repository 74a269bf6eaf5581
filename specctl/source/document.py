"""A source text, the value it holds, and where every key and value of it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specctl.diagnostics import Fix, Route, Span
from specctl.errors import MissingError

MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Problem:
    """Something wrong with the text itself; `code` is one of the SPC0xx codes of reading."""

    code: str
    message: str
    span: Span | None = None
    help: str | None = None
    notes: tuple[str, ...] = ()
    route: Route = ()
    fix: Fix | None = None


@dataclass
class Document:
    """What was read: `value` (None where nothing could be), `values` and `keys` (places by route), `problems`.

    `keys[route]` is the place of the key that leads to `route`; a list item has no key.
    """

    source: str
    text: str
    form: str
    value: Any = None
    values: dict[Route, Span] = field(default_factory=dict)
    keys: dict[Route, Span] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True

    def span(self, route: Route, *, key: bool = False) -> Span | None:
        """The place of the value (or key) at `route`; the nearest enclosing place where it has none of its own."""
        table, other = (self.keys, self.values) if key else (self.values, self.keys)
        for end in range(len(route), -1, -1):
            at = route[:end]
            if at in table:
                return table[at]
            if at in other and end == len(route):
                return other[at]
        return self.whole()

    def whole(self) -> Span | None:
        """The place of the whole text: its first line that is not blank."""
        offset = len(self.text) - len(self.text.lstrip())
        if offset == len(self.text):
            return None
        end = self.text.find("\n", offset)
        return Span.of(self.text, offset, len(self.text) if end < 0 else end)

    def refuse(self, problem: Problem) -> None:
        """Record a problem that leaves no usable value."""
        self.problems.append(problem)
        self.readable = False
        self.value = None


def read_file(path: Path) -> Document:
    """The text of a file as a document whose value is not read yet.

    Raises `MissingError` where the file is missing or unreadable. Binary, empty and oversized files give a document
    with a problem."""
    try:
        if path.is_dir():
            raise MissingError(f"{path} is a folder; a file was wanted")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        from specctl.resources import preset

        cure = "check the path; relative paths start from the current folder"
        if preset(str(path)) is not None:
            cure = f"a preset is called so: --spec {path}"
        raise MissingError(f"{path} does not exist (looked for {path.absolute()})", help=cure) from None
    except ValueError as error:  # a name that no file can have
        raise MissingError(f"{str(path)!r} cannot be read: {error}") from None
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror or error}") from None
    return from_bytes(str(path), data)


def from_bytes(source: str, data: bytes) -> Document:
    """A document of raw bytes; see `read_file`."""
    form = "json" if source.endswith(".json") else "yaml"
    if len(data) > MAX_BYTES:
        document = Document(source, "", form)
        document.refuse(
            Problem(
                "SPC001",
                f"{source} is larger than {MAX_BYTES >> 20} MiB; no settings file is",
                help="name the file that holds the setting",
            )
        )
        return document
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        document = Document(source, "", form)
        text = f"{source} is UTF-16 text; the engines read UTF-8"
        document.refuse(Problem("SPC001", text, help="save the file as UTF-8 (PowerShell: Out-File -Encoding utf8)"))
        return document
    if b"\x00" in data[:8192]:
        document = Document(source, "", form)
        document.refuse(
            Problem(
                "SPC001",
                f"{source} is a binary file, not text; a YAML or JSON text was wanted",
                help="give the settings file, not a model or archive",
            )
        )
        return document
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        document = Document(source, "", form)
        document.refuse(
            Problem(
                "SPC001",
                f"{source} is not UTF-8 text: byte {error.start} cannot be read",
                help="save the file as UTF-8",
            )
        )
        return document
    return Document(source, text.replace("\r\n", "\n"), form)


def sniff(text: str) -> str:
    """`json` or `yaml`, whichever the text looks like."""
    return "json" if text.lstrip()[:1] in ("{", "[", '"') else "yaml"
