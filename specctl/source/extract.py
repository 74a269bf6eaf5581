"""Engine command lines and settings inside files that are something else: shell scripts, Dockerfiles, units of systemd,
makefiles, and (in `manifest`) Kubernetes, Compose, Helm and workflow YAML.

`embedded(document)` finds them; each `Embedded` knows for every character where in the file it stands, so that what
is said about it points into the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from specctl.source.command import CONTAINERS, entry_of
from specctl.source.document import Document
from specctl.source.flags import owner
from specctl.source.mapped import Mapped, unescaped
from specctl.source.shell import MASK, Shell, Variables, Word, assigned, assignments

ENTRY = re.compile(
    r"\bvllm(?:[ \t]|\\\n)+(?:serve|bench)\b|vllm\.entrypoints\.|sglang\.launch_server|\bsglang(?:[ \t]|\\\n)+serve\b"
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
# Images whose own program takes the flags behind them, and the release that a tag names.
IMAGES = {"vllm": "vllm/vllm-openai", "sglang": "lmsysorg/sglang", "trtllm": "tensorrt-llm/release"}
_TAG = re.compile(r":v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:rc|a|b)\d+)?)(?![\w.]*\.\d)")
_PROGRAM = re.compile(r"(?:\S*/)?(?:python[\d.]*|sh|bash|env|exec|ray)")
# Programs that hand a quoted command on to a shell.
_HANDS_ON = frozenset(("ssh", "eval", "bash", "sh", "su", "tmux", "screen", "srun", "pdsh", "parallel", "watch"))


@dataclass(frozen=True)
class Embedded:
    """A command line (`words`), the text of a settings file (`setting`), or a mapping below other keys of a YAML file
    (`node`, with the form in which it is read), inside another file; `within`: the text that holds the node, where that
    is not the file itself.

    `engine`: whose it is, where the command itself says so; `release`: which one, where an image's tag says so;
    `env`: the engine's environment variables set for it; `foreign`: another program takes it first, so that names
    which the engine does not know may be that program's."""

    words: tuple[Word, ...] = ()
    setting: Mapped | None = None
    node: Any = None
    within: Mapped | None = None
    form: str = "yaml"
    engine: str | None = None
    release: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    foreign: bool = False


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
        name = PurePath(document.source).name
        found = in_text(Mapped.whole(covered), make=name.endswith(".mk") or name.lower().startswith("makefile"))
    return _once(found)[:LIMIT]


def _once(found: list[Embedded]) -> list[Embedded]:
    """Each setting once: not again for every alias, and not by itself where a command that uses it was found."""
    used = {place for each in found if not each.foreign for place in _flag_places(each)}
    kept: dict[Any, Embedded] = {}
    for number, each in enumerate(found):
        places = _flag_places(each)
        if each.foreign and places and used.issuperset(places):
            continue
        texts = tuple(word.text for word in each.words)
        kept.setdefault((texts, places) if each.words else number, each)
    return list(kept.values())


def _flag_places(each: Embedded) -> tuple[int, ...]:
    return tuple(word.mapped.at[0] for word in each.words if word.text and owner(word.text))


def masked(text: str) -> str:
    """The text with template marks covered, each character by one, so that places hold; lines of nothing else become
    blank."""
    if "{{" not in text and "{%" not in text:
        return text
    text = _ALONE.sub(lambda found: " " * len(found.group()), text)
    return _TEMPLATE.sub(lambda found: MASK * len(found.group()), text)


def in_text(
    source: Mapped, env: dict[str, str] | None = None, variables: Variables | None = None, *, make: bool = False
) -> list[Embedded]:
    """What a text in the language of a shell, or a makefile, holds."""
    known = assignments(source) | dict(variables or {})
    around = {name: words[0].text for name, words in known.items() if ENGINE_VARIABLE.fullmatch(name) and words}
    around = {**(env or {}), **around}
    heredocs = list(_heredocs(source))
    found = [Embedded(setting=body) for body in heredocs if is_setting(body.text)]
    found += _exec_forms(source, around)
    done = 0
    shell = Shell(source, known, make=make)
    spoken = list(_printed(source.text))
    for mark in ENTRY.finditer(source.text):
        if mark.start() < done or any(start <= mark.start() < end for start, end in spoken):
            continue
        if len(found) >= LIMIT:
            break
        for words, done in _commands_at(shell, mark.start()):  # noqa: B007 (kept behind the loop)
            found += of_words(words, around)
    return found + _loose(source, found, around)


def _loose(source: Mapped, found: list[Embedded], env: dict[str, str]) -> list[Embedded]:
    """Flags of speculation in variables that no command of the text is known to use: one branch or the other sets
    them, another script or an env file passes them on."""
    if not any(owner(word) for word in re.findall(r"--?[\w.-]+", source.text)):
        return []
    used = {place for each in found for word in each.words for place in word.mapped.at}
    more: list[Embedded] = []
    for _, _, values in assigned(source):
        words = [part for value in values for part in _resplit(source, value)]
        if words and words[0].text.startswith("["):  # a list in HCL or TOML
            words = _listed(source, words[0].mapped.at[0])
        fresh = not any(word.text and word.mapped.at[0] in used for word in words)
        if fresh and any(owner(word.text) for word in words):
            more += of_words(words, env) or bare_flags(words, env)
            used.update(place for word in words for place in word.mapped.at)
    return more[:LIMIT]


def _resplit(source: Mapped, value: Word) -> list[Word]:
    """The words of a variable that holds several of them; in an env file it reaches to the end of its line."""
    rest = re.compile(r"[ \t]+[^\n]+").match(source.text, _behind(source, value))
    if rest and owner(value.text) and " " not in value.text:
        return [value, *line_words(source.part(*rest.span()))]
    return line_words(value.mapped) if " " in value.text.strip() and "-" in value.text else [value]


def _listed(source: Mapped, place: int) -> list[Word]:
    """The texts of the list that opens at `place`; none where it holds anything else."""
    at = source.at.index(place) + 1
    words = json_words(source, at)
    behind = source.at.index(words[-1].mapped.at[-1]) + 2 if words and words[-1].text else at
    return words if re.compile(r"[\s,]*\]").match(source.text, behind) else []


def line_words(line: Mapped) -> list[Word]:
    """The words of a text that a shell cuts up later. It cuts at blanks, and only `eval` and the like read quotes;
    so quotes around a JSON text go, those inside of it stay."""
    if re.match(r"--?[\w.-]+=\{.*\}\s*$", line.text, re.S):
        return [Word(line.part(0, len(line.text.rstrip())))]
    if re.search(r"['\"]\s*\{|\\\"|--?[\w-]+(?:=|\s+)['\"]", line.text):
        return Shell(line).command(0)[0]
    return [Word(line.part(*found.span())) for found in re.finditer(r"\S+", line.text)]


def _behind(source: Mapped, value: Word) -> int:
    """The index in `source` just behind a word's last character."""
    last = value.mapped.at[-1] if value.text else -1
    return source.at.index(last) + 1 if last in source.at else len(source.text)


def _printed(text: str) -> Iterator[tuple[int, int]]:
    """Where here-documents stand that are only shown, as a usage text."""
    for start in _HEREDOC.finditer(text):
        line = text[text.rfind("\n", 0, start.start()) + 1 : start.end()]
        if re.match(r"[ \t]*(?:cat|echo)\b[^>|]*$", line.replace(start.group(0).split("\n")[0], "")):
            end = re.compile(rf"(?m)^[ \t]*{start.group(2)}[ \t]*$").search(text, start.end())
            yield start.end(), end.start() if end else len(text)


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
            inner = next((each for each in words[at:] if _script(each)), None)
            if inner is not None and PurePath(word.text).name in CONTAINERS:  # docker run IMAGE bash -c "..."
                return in_text(inner.mapped, env)
            begin = at
            while begin and "=" in words[begin - 1].text and not words[begin - 1].text.startswith("-"):
                begin -= 1
            texts = [each.text for each in words[begin:]]
            bench = texts[at - begin + 1 : at - begin + 2] == ["bench"]
            return [Embedded(tuple(words[begin:]), engine=engine, env=env, release=release_of(texts), foreign=bench)]
        if at and _script(word) and (words[at - 1].text.endswith("c") or _hands_on(words[:at])):
            return in_text(word.mapped, env)
    return []


def _script(word: Word) -> bool:
    """Whether a word is a whole command, as behind `sh -c`."""
    return " " in word.text and ENTRY.search(word.text) is not None and not word.text.lstrip().startswith("{")


def _hands_on(words: list[Word]) -> bool:
    return any(PurePath(word.text).name in _HANDS_ON for word in words)


def release_of(texts: list[str]) -> str | None:
    """The release that the tag of an engine's image names, among the words of a command."""
    images = (text for text in texts if any(image in text for image in IMAGES.values()))
    found = next((_TAG.search(text) for text in images), None)
    return found.group(1) if found else None


def bare_flags(words: list[Word], env: dict[str, str], image: str = "", *, program: bool = False) -> list[Embedded]:
    """A list of flags without an engine's program: the engine is told by the image or by whose flags they are.

    `program`: the words begin with another program. Where the image's own program is the engine, the words are judged
    as its command line; any other program may have flags of its own."""
    owners = [found[0] for found in (owner(word.text) for word in words) if found]
    if not owners:
        return []
    engine = next((name for name in ("vllm", "sglang") if name in image), owners[0])
    own = IMAGES["vllm"] in image and not program and not _PROGRAM.fullmatch(words[0].text)
    spoken = [engine, "serve"] if own else [engine] if words[0].text == "serve" and engine != "trtllm" else []
    place = next(iter(words[0].mapped.at), 0)
    named = [Word(Mapped(text, [place] * len(text))) for text in spoken]
    return [Embedded((*named, *words), engine=engine, env=env, release=release_of([image]), foreign=not own)]


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
