"""Engine command lines and settings inside files that are something else: shell scripts, Dockerfiles, units of systemd,
makefiles, and (in `manifest`) Kubernetes, Compose, Helm and workflow YAML.

`embedded(document)` finds them; each `Embedded` knows for every character where in the file it stands, so that what
is said about it points into the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from specctl.source.command import entry_of
from specctl.source.document import Document
from specctl.source.flags import owner
from specctl.source.mapped import Mapped, unescaped
from specctl.source.shell import MASK, Shell, Variables, Word, assignments

ENTRY = re.compile(
    r"\bvllm(?:[ \t]|\\\n)+serve\b|vllm\.entrypoints\.|sglang\.launch_server|\bsglang(?:[ \t]|\\\n)+serve\b"
    r"|\btrtllm-serve\b|vllm/vllm-openai|tensorrt_llm\.commands\.serve"
)
# What a text must hold before it is worth looking into.
MARKS = ("vllm", "sglang", "trtllm-serve", "tensorrt", "--spec", "decoding_type", "speculative")
# Mustache and Jinja marks; doubled braces around a quote are JSON that a template damaged, which is for others to say.
_TEMPLATE = re.compile(r"\$?\{\{-?\s*[\w.$(|/][^{}\n]*\}\}|\{%[^\n]*?%\}")
_ALONE = re.compile(r"(?m)^[ \t]*(?:\{\{-?\s*[\w.$(|/][^{}\n]*\}\}|\{%[^\n]*?%\})[ \t]*$")
_LEAD = re.compile(r"[ \t]*(?:Exec\w+=[-@:+!|]*|[@+-]+(?=\w))?")
_EXEC_FORM = re.compile(r"(?mi)^[ \t]*(ENTRYPOINT|CMD)[ \t]+\[")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
ENGINE_VARIABLE = re.compile(r"(?:VLLM|SGLANG|SGL|TRTLLM|TLLM)_\w+")
_SETTING = re.compile(r"(?m)^[ \t{\"]*(?:speculative[-_]\w+|decoding_type|spec[-_]method)[\"]?[ \t]*:")
LIMIT = 400


@dataclass(frozen=True)
class Embedded:
    """A command line (`words`) or the text of a settings file (`setting`) inside another file.

    `engine`: whose it is, where the command itself says so; `env`: the engine's environment variables set for it."""

    words: tuple[Word, ...] = ()
    setting: Mapped | None = None
    engine: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def embedded(document: Document) -> list[Embedded]:
    """All command lines and settings inside a file's text, in their order."""
    text = document.text
    if not any(mark in text for mark in MARKS):
        return []
    found: list[Embedded] | None = None
    covered = masked(text)
    if document.source.endswith((".yaml", ".yml", ".json", ".tpl", "stdin>")):
        from specctl.source.manifest import in_manifest

        found = in_manifest(covered)
        if found is None and covered is text and not document.source.endswith("stdin>"):
            return []  # the YAML itself is broken, which is for its reader to say
    if found is None:
        found = in_text(Mapped.whole(covered))
    return found[:LIMIT]


def masked(text: str) -> str:
    """The text with template marks covered, each character by one, so that places hold; lines of nothing else become
    blank."""
    if "{{" not in text and "{%" not in text:
        return text
    text = _ALONE.sub(lambda found: " " * len(found.group()), text)
    return _TEMPLATE.sub(lambda found: MASK * len(found.group()), text)


def in_text(source: Mapped, env: dict[str, str] | None = None, variables: Variables | None = None) -> list[Embedded]:
    """What a text in the language of a shell holds."""
    known = assignments(source) | dict(variables or {})
    around = {name: words[0].text for name, words in known.items() if ENGINE_VARIABLE.fullmatch(name) and words}
    around = {**(env or {}), **around}
    heredocs = list(_heredocs(source))
    found = [Embedded(setting=body) for body in heredocs if is_setting(body.text)]
    found += _exec_forms(source, around)
    done = 0
    shell = Shell(source, known)
    for mark in ENTRY.finditer(source.text):
        if mark.start() < done:
            continue
        if len(found) >= LIMIT:
            break
        for words, done in _commands_at(shell, mark.start()):  # noqa: B007 (kept behind the loop)
            found += of_words(words, around)
    return found


def _heredocs(source: Mapped) -> Iterator[Mapped]:
    for start in _HEREDOC.finditer(source.text):
        end = re.compile(rf"(?m)^[ \t]*{start.group(2)}[ \t]*$").search(source.text, start.end())
        yield source.part(start.end(), end.start() if end else len(source.text))


def is_setting(text: str) -> bool:
    """Whether a text looks like the YAML or JSON of a setting rather than like a command."""
    return _SETTING.search(text) is not None and ENTRY.search(text) is None


def _commands_at(shell: Shell, place: int) -> Iterator[tuple[list[Word], int]]:
    """The simple commands of the line that holds `place`, up to the one that does."""
    text = shell.text
    at = text.rfind("\n", 0, place) + 1
    while at:
        before = text.rfind("\n", 0, at - 1) + 1
        if not text[before : at - 1].rstrip(" \t\r").endswith("\\"):
            break
        at = before
    lead = _LEAD.match(text, at)
    at = lead.end() if lead else at
    while at <= place < len(text):
        words, end = shell.command(at)
        if end > place:
            yield words, end
        at = max(end + 1, at + 1)
    if at <= place:
        yield [], place + 1


def of_words(words: list[Word], env: dict[str, str]) -> list[Embedded]:
    """The engine command among the words of a simple command, or inside the text behind a shell's `-c`."""
    for at, word in enumerate(words):
        engine = entry_of([each.text for each in words[at : at + 40]])[0]
        if engine is not None:
            begin = at
            while begin and "=" in words[begin - 1].text and not words[begin - 1].text.startswith("-"):
                begin -= 1
            return [Embedded(tuple(words[begin:]), engine=engine, env=env)]
        if at and " " in word.text and ENTRY.search(word.text) and words[at - 1].text.endswith("c"):
            return in_text(word.mapped, env)
    return []


def bare_flags(words: list[Word], env: dict[str, str], image: str = "") -> list[Embedded]:
    """A list of flags without its program: the engine is told by the image or by whose flags they are."""
    engine = next((name for name in ("vllm", "sglang") if name in image), None)
    owners = [found[0] for found in (owner(word.text) for word in words) if found]
    if not owners:
        return []
    return [Embedded(tuple(words), engine=engine or owners[0], env=env)]


def _exec_forms(source: Mapped, env: dict[str, str]) -> list[Embedded]:
    """`ENTRYPOINT ["vllm", "serve"]` and `CMD [...]` of a Dockerfile, which Docker puts behind each other."""
    lists: dict[str, list[Word]] = {}
    for start in _EXEC_FORM.finditer(source.text):
        lists[start.group(1).upper()] = json_words(source, start.end())
    words = lists.get("ENTRYPOINT", []) + lists.get("CMD", [])
    return of_words(words, env) or (bare_flags(words, env) if words else [])


def json_words(source: Mapped, at: int) -> list[Word]:
    """The texts of a JSON list that opened just before `at`."""
    words: list[Word] = []
    gap = re.compile(r"(?:[\s,]|\\\n)*")
    while True:
        between = gap.match(source.text, at)
        found = _STRING.match(source.text, between.end() if between else at)
        if not found:
            return words
        pairs = ((char, source.at[place]) for char, place in unescaped(found.group(1), found.start(1)))
        words.append(Word(Mapped.of(pairs)))
        at = found.end()
