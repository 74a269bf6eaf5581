"""Command lines and settings inside YAML that is not a setting itself: Kubernetes, Compose, Helm values, workflows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import yaml

from specctl.source.extract import (
    ENGINE_VARIABLE,
    ENTRY,
    Embedded,
    bare_flags,
    in_text,
    is_setting,
    line_words,
    of_words,
    release_of,
)
from specctl.source.flags import owner
from specctl.source.mapped import Mapped, aligned, unescaped
from specctl.source.shell import MASK, VARIABLE, Shell, Word

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMAND = ("entrypoint", "command", "args", "cmd")
# Keyword arguments of the engine that a verdict hangs on, where they stand beside a setting.
_BESIDE = ("model", "tensor_parallel_size", "max_model_len", "max_num_batched_tokens", "max_num_seqs", "enable_lora")
_FLAGS = re.compile(r"\s*(?:--[\w.-]+(?:=|\s+)|-sc\s|serve\s)\S")
_PROSE = re.compile(r"\s*--speculative[-_]config\s+[a-z]+\s")
MAX_NODES = 100_000


def in_manifest(text: str) -> list[Embedded] | None:
    """What the YAML documents of a text hold; None where it is no YAML."""
    try:
        roots = list(yaml.compose_all(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    walk = _Manifest(text)
    try:
        for root in roots:
            walk.node(root, {}, "")
    except RecursionError:
        return None
    return walk.found


class _Manifest:
    """Walks node trees; `found` grows in the order of the file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Embedded] = []
        self.seen: set[int] = set()

    def node(self, node: Any, env: dict[str, Word], image: str) -> None:
        if node is None or id(node) in self.seen or len(self.seen) > MAX_NODES:
            return
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            self.mapping(node, env, image)
        elif isinstance(node, yaml.SequenceNode):
            self.sequence(node, env, image)
        elif isinstance(node, yaml.ScalarNode):
            self.scalar(node, env, image)

    def mapping(self, node: Any, env: dict[str, Word], image: str) -> None:
        entries = {key.value: value for key, value in _merged(node) if isinstance(key, yaml.ScalarNode)}
        env = env | self.environment(entries.get("env")) | self.environment(entries.get("environment"))
        own = entries.get("image")
        image = own.value if isinstance(own, yaml.ScalarNode) else image
        self.command(entries, env, image)
        self.nested(node)
        for value in entries.values():
            self.node(value, env, image)

    def nested(self, node: Any) -> None:
        """A setting below other keys, as the engine's keyword arguments in the file of another server."""
        entries = [(key, value) for key, value in _merged(node) if isinstance(key, yaml.ScalarNode)]
        names = [_snake(key.value) for key, _ in entries]
        if "speculative_algorithm" in names:
            dashed = any("-" in key.value for key, _ in entries)
            kept = [pair for pair in entries if isinstance(pair[1], (yaml.ScalarNode, yaml.SequenceNode))]
            self.found.append(_below(node, kept, "yaml" if dashed else "python", "sglang"))
            return
        for name, (key, value) in zip(names, entries, strict=True):
            text = isinstance(value, yaml.ScalarNode) and value.value.lstrip().startswith("{")
            if name != "speculative_config" or not (text or isinstance(value, yaml.MappingNode)):
                continue
            self.seen.add(id(value))
            own = [(yaml.ScalarNode(key.tag, name, key.start_mark, key.end_mark, key.style), value)]
            if "decoding_type" not in {_snake(str(part.value)) for part, _ in _merged(value)}:
                others = zip(names, entries, strict=True)
                own += [pair for other, pair in others if other in _BESIDE and isinstance(pair[1], yaml.ScalarNode)]
            self.found.append(_below(node, own, "yaml", None))

    def environment(self, node: Any) -> dict[str, Word]:
        """`env` of a container (name and value), a mapping, or a list of `NAME=value`."""
        found: dict[str, Word] = {}
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode):
                    found[key.value] = Word(self.mapped(value))
        for item in node.value if isinstance(node, yaml.SequenceNode) else ():
            if isinstance(item, yaml.MappingNode):
                parts = {key.value: value for key, value in item.value if isinstance(value, yaml.ScalarNode)}
                if "name" in parts and "value" in parts:
                    found[parts["name"].value] = Word(self.mapped(parts["value"]))
            elif isinstance(item, yaml.ScalarNode) and "=" in item.value:
                name, _, value = item.value.partition("=")
                whole = self.mapped(item)
                found[name] = Word(whole.part(len(name) + 1, len(item.value)))
        return found

    def command(self, entries: dict[str, Any], env: dict[str, Word], image: str) -> None:
        """Command and arguments of a container: lists, or a text that Compose cuts into words."""
        parts = [entries[name] for name in _COMMAND if name in entries]
        if not any(isinstance(part, yaml.SequenceNode) for part in parts) and len(parts) < 2 and not image:
            return
        words: list[Word] = []
        for part in parts:
            words += self.words(part, env)
        if any(_script(word) for word in words):
            return
        found = of_words(words, _texts(env))
        if found or "vllm/vllm-openai" in image or any(owner(word.text) for word in words):
            self.seen |= {id(part) for part in parts}
            program = "entrypoint" in entries or ("command" in entries and "args" in entries)
            found = found or bare_flags(words, _texts(env), image, program=program)
            self.found += [replace(each, release=each.release or release_of([image])) for each in found]

    def words(self, node: Any, env: dict[str, Word]) -> list[Word]:
        if isinstance(node, yaml.SequenceNode):
            items = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
            return [_expanded(Word(self.mapped(item)), env) for item in items]
        if isinstance(node, yaml.ScalarNode):
            return Shell(self.mapped(node), {name: [word] for name, word in env.items()}).command(0)[0]
        return []

    def sequence(self, node: Any, env: dict[str, Word], image: str) -> None:
        scalars = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
        if len(scalars) == len(node.value) and any(owner(item.value) for item in scalars):
            words = self.words(node, env)
            found = of_words(words, _texts(env)) or bare_flags(words, _texts(env), image)
            self.found += found
            return
        for item in node.value:
            self.node(item, env, image)

    def scalar(self, node: Any, env: dict[str, Word], image: str) -> None:
        value = node.value
        if is_setting(value) and ("\n" in value or value.lstrip().startswith("{")):
            inner = _deeper(self.mapped(node))
            if inner is not None:
                self.found += inner
                return
            self.found += in_text(self.mapped(node)) if "<<" in value else [Embedded(setting=self.mapped(node))]
        elif ENTRY.search(value) and " " in value.strip():
            self.found += in_text(self.mapped(node), _texts(env), {name: [word] for name, word in env.items()})
        elif _FLAGS.match(value) and any(map(owner, value.split())) and not _PROSE.match(value):
            self.found += bare_flags(line_words(self.mapped(node)), _texts(env), image)

    def mapped(self, node: Any) -> Mapped:
        """A scalar's value with the places of its characters."""
        start, end = node.start_mark.index, node.end_mark.index
        raw = self.text[start:end]
        if node.style == '"':
            return aligned(node.value, unescaped(raw[1:-1], start + 1), start)
        if node.style in ("|", ">"):
            head = raw.find("\n") + 1
            raw, start = raw[head:], start + head
        elif node.style == "'":
            pairs = [(char, start + 1 + at) for at, char in enumerate(raw[1:-1])]
            return aligned(node.value, _single(pairs), start)
        return aligned(node.value, ((char, start + at) for at, char in enumerate(raw)), start)


def _merged(node: Any) -> list[tuple[Any, Any]]:
    """The entries of a mapping, those of the mappings that it merges (`<<`) before its own."""
    found: list[tuple[Any, Any]] = []
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.tag != "tag:yaml.org,2002:merge":
            continue
        parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
        found += [pair for part in parts if isinstance(part, yaml.MappingNode) for pair in part.value]
    own = node.value if isinstance(node, yaml.MappingNode) else ()
    return found + [pair for pair in own if pair[0].tag != "tag:yaml.org,2002:merge"]


def _snake(name: str) -> str:
    """A key as the engines spell it: `speculativeConfig` and `speculative-config` too."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")


def _below(node: Any, entries: list[tuple[Any, Any]], form: str, engine: str | None) -> Embedded:
    """Some entries of a mapping, as a setting of their own."""
    kept = yaml.MappingNode(node.tag, entries, node.start_mark, node.end_mark, node.flow_style)
    return Embedded(node=kept, form=form, engine=engine, foreign=True)


def _deeper(text: Mapped) -> list[Embedded] | None:
    """What a YAML text inside a value holds below its own keys, as a service's configuration does; None where the
    setting stands at its root, or nothing was found."""
    try:
        root = yaml.compose(text.text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    names = {_snake(str(key.value)).split(".")[0] for key, _ in root.value}
    if names & {"speculative_config", "speculative_algorithm", "decoding_type", "spec_method", "specctl"}:
        return None
    found = in_manifest(text.text)
    return [_outward(each, text) for each in found] if found else None


def _outward(each: Embedded, text: Mapped) -> Embedded:
    """What was found in a text that itself was taken out of the file, with its places in the file."""

    def moved(inner: Mapped) -> Mapped:
        return Mapped(inner.text, [text.at[min(place, len(text.at) - 1)] for place in inner.at])

    words = tuple(Word(moved(word.mapped), word.unknown) for word in each.words)
    within = None if each.node is None else moved(each.within or Mapped.whole(text.text))
    setting = None if each.setting is None else moved(each.setting)
    return replace(each, words=words, setting=setting, within=within)


def _single(pairs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Characters between single quotes, where two quotes stand for one."""
    kept: list[tuple[str, int]] = []
    paired = False
    for char, place in pairs:
        paired = char == "'" and not paired
        if not paired:
            kept.append((char, place))
    return kept


def _script(word: Word) -> bool:
    """Whether a word is a whole script, as behind `sh -c`."""
    return ENTRY.search(word.text) is not None and any(char in word.text.strip() for char in " \n")


def _expanded(word: Word, env: dict[str, Word]) -> Word:
    """A list item with `$(NAME)` filled in from the container's environment, as Kubernetes does it."""
    if "$" not in word.text and MASK not in word.text:
        return word
    pairs: list[tuple[str, int]] = []
    unknown: list[str] = ["a template mark"] if MASK in word.text else []
    at = 0
    for found in VARIABLE.finditer(word.text):
        name = next((each for each in found.groups() if each), "")
        pairs += word.mapped.part(at, found.start()).pairs()
        if name in env:
            pairs += env[name].mapped.pairs()
        else:
            unknown.append(found.group())
            pairs += word.mapped.part(*found.span()).pairs()
        at = found.end()
    pairs += word.mapped.part(at, len(word.text)).pairs()
    return Word(Mapped.of(pairs), tuple(unknown))


def _texts(env: dict[str, Word]) -> dict[str, str]:
    return {name: word.text for name, word in env.items() if ENGINE_VARIABLE.fullmatch(name)}
