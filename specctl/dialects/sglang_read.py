"""Reads SGLang's flags from a command line, a `--config` YAML file, or Python keyword arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specctl.diagnostics import Fix, Route
from specctl.dialects import coerce as types
from specctl.dialects.foreign import explain_key
from specctl.dialects.misuse import misused
from specctl.dialects.reading import Finding, Reading, Surroundings, coerce, missing_file, nearest, shown
from specctl.dialects.sglang import ENGINE, REMOVED_FLAGS, ROWS, SWITCH, flag
from specctl.dialects.sglang_flags import (
    SGLANG_FLOATS,
    SGLANG_INTS,
    SGLANG_LISTS,
    SGLANG_SWITCHES,
    SGLANG_VALUES,
    SGLANG_WORDS,
)
from specctl.dialects.sglang_resolve import resolve
from specctl.dialects.sglang_spec import build
from specctl.errors import MissingError
from specctl.source import Document, read_file, read_yaml
from specctl.source.command import entry_of
from specctl.source.flags import Given, Misuse, parse_options

_ALIASES = {
    "--tp": "--tp-size",
    "--dp": "--dp-size",
    "--tensor-parallel-size": "--tp-size",
    "--data-parallel-size": "--dp-size",
    "--pipeline-parallel-size": "--pp-size",
    "--attention-data-parallel-size": "--attn-dp-size",
    "--model": "--model-path",
}
# Actions that the config file's reader refuses by name.
_NOT_IN_FILE = frozenset(
    {
        "speculative-enable-w4a4-mxfp4-megamoe",
        "disable-cuda-graph",
        "enable-dp-attention",
        "lora-paths",
        "ple-offload-embedding",
        "lora-strict-loading",
        "dcp-replicate-q-proj",
    }
)


@dataclass
class _Words:
    """A command line whose words know where they came from."""

    texts: list[str] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)

    def add(self, text: str, route: Route) -> None:
        self.texts.append(text)
        self.routes.append(route)


def table() -> dict[str, str]:
    """All flags by the number of their values."""
    found = {f"--{name}": "value" for name in (*SGLANG_INTS, *SGLANG_FLOATS, *SGLANG_VALUES)}
    found |= {f"--{name}": "switch" for name in SGLANG_SWITCHES} | {f"--{name}": "many" for name in SGLANG_LISTS}
    for row in ROWS:
        for name in (row.key, *row.aliases):
            found[flag(name)] = "switch" if row.kind == SWITCH else "value"
    found["--no-speculative-enable-w4a4-mxfp4-megamoe"] = "switch"
    return found


def read(document: Document, around: Surroundings, release: str, form: str) -> Reading:
    """The reading of a document; `form` is `argv`, `yaml`, `python` (or `json`: keyword arguments as an object)."""
    reading = Reading(ENGINE, ENGINE, release, document, around)
    words = _Words()
    positionals = 0
    if form == "argv":
        positionals = _argv(reading, words)
    elif not document.readable:
        reading.blocked = True
    elif form == "yaml":
        _mapping_words(reading, words, document.value, ())
    else:
        _python(reading)
    if not reading.blocked:
        _parse(reading, words, positionals)
        resolve(reading)
        reading.spec = build(reading)
    return reading


def _argv(reading: Reading, words: _Words) -> int:
    tokens: list[str] = reading.document.value
    engine, skip, positionals = entry_of(tokens)
    reading.notes["entry"] = engine is not None
    reading.notes["first"] = at = skip
    while at < len(tokens):
        if tokens[at] == "--config" and at + 1 < len(tokens) and not tokens[at + 1].startswith("--"):
            _config_file(reading, words, tokens[at + 1], (at + 1,))
            at += 2
            continue
        if tokens[at].startswith("--config="):
            reading.say(
                Finding(
                    "SPC326",
                    "--config=FILE is taken and then ignored; only --config FILE is read",
                    (at,),
                    help="write --config and the file as two words",
                    severity="warning",
                )
            )
        words.add(tokens[at], (at,))
        at += 1
    return positionals


def _config_file(reading: Reading, words: _Words, name: str, route: Route) -> None:
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        reading.say(
            Finding(
                "SPC012",
                f"--config takes a .yaml or .yml file, not {path.name!r}",
                route,
                help="rename the file to .yaml",
            )
        )
        return
    try:
        document = read_file(path)
    except MissingError as error:
        reading.say(missing_file(reading, error, route))
        return
    read_yaml(document)
    if not document.readable:
        problem = document.problems[0]
        reading.say(Finding("SPC003", f"{name}: {problem.message}", route, help=problem.help))
        return
    own = _Words()
    _mapping_words(reading, own, document.value, route)
    words.texts[:0], words.routes[:0] = own.texts, own.routes


def _mapping_words(reading: Reading, words: _Words, value: Any, base: Route) -> None:
    """Flags out of a config file, as SGLang's own reader makes them."""
    if value is None:
        return
    if not isinstance(value, dict):
        reading.say(
            Finding(
                "SPC011",
                f"the file's root is {shown(value)}; a mapping from flags to values was wanted",
                base,
                help="write one flag a line: speculative-algorithm: EAGLE3",
            )
        )
        reading.blocked = True
        return
    known = table()
    for key, item in value.items():
        _one_word(reading, words, str(key), item, base or (key,), known)


def _one_word(reading: Reading, words: _Words, key: str, item: Any, route: Route, known: dict[str, str]) -> None:
    name = f"--{key}"
    if key in _NOT_IN_FILE:
        reading.say(
            Finding(
                "SPC008",
                f"{key} cannot be given in the config file",
                route,
                at_key=True,
                help=f"give --{key} on the command line",
            )
        )
    elif isinstance(item, bool) and (known.get(name) == "switch" or (item is False and "_" in key)):
        if item:
            words.add(name, route)
    elif isinstance(item, list):
        words.add(name, route)
        for part in item:
            words.add(str(part), route)
    else:
        words.add(name, route)
        if item is None:
            reading.say(
                Finding(
                    "SPC326", f"{key}: null becomes the text None", route, severity="warning", help="leave the key out"
                )
            )
            reading.notes.setdefault("null_keys", set()).add(key.replace("-", "_"))
        text = (
            json.dumps(item) if isinstance(item, dict) else str(item).lower() if isinstance(item, bool) else str(item)
        )
        words.add(text, route)


def _python(reading: Reading) -> None:
    """Keyword arguments of `sglang.Engine(...)`: the flags' names with underscores, values already typed."""
    value = reading.document.value
    rows = {name: row for row in ROWS for name in (row.key, *row.aliases)}
    known = {name[2:].replace("-", "_") for name in table()}
    if not isinstance(value, dict):
        reading.say(Finding("SPC011", f"the setting is {shown(value)}; an object with keys was wanted", ()))
        reading.blocked = True
        return
    for key, item in value.items():
        row = rows.get(str(key))
        if row is not None:
            reading.values[row.key] = coerce(reading, row, item, (key,), types.LAX)
        elif key in known:
            if key in ("model_path", "model"):
                reading.around.serves(item, in_file=True)
            reading.around.args.setdefault(str(key), item)
            reading.arg_routes[str(key)] = (key,)
        else:
            near = nearest(str(key), [*rows, *known])
            reading.say(
                Finding(
                    "SPC005",
                    f"SGLang has no argument {key!r}",
                    (key,),
                    at_key=True,
                    help=explain_key(str(key), item, ENGINE) or (f"did you mean {near!r}?" if near else None),
                )
            )


def _parse(reading: Reading, words: _Words, positionals: int) -> None:
    known = table()
    options, wrong, named = parse_options(words.texts, known, positionals)
    for index in named:
        if words.routes[index] != (reading.notes["first"],):  # sglang serve takes MODEL as its first word only
            wrong.append(Misuse("stray", index, words.texts[index]))
            continue
        reading.around.serves(words.texts[index])
    for misuse in wrong:
        _misuse(reading, misuse, words, known)
    rows = {flag(name): row for row in ROWS for name in (row.key, *row.aliases)}
    for each in options:
        route = words.routes[each.value_at]
        row = rows.get(each.flag)
        if each.flag == "--no-speculative-enable-w4a4-mxfp4-megamoe":
            row, value = rows["--speculative-enable-w4a4-mxfp4-megamoe"], False
            reading.values[row.key] = coerce(reading, row, value, route, types.WORDS)
        elif row is not None:
            raw = True if row.kind == SWITCH else each.value
            reading.values[row.key] = coerce(reading, row, raw, route, types.WORDS, silent=True)
        else:
            _other(reading, each, route)


def _other(reading: Reading, each: Given, route: Route) -> None:
    name = _ALIASES.get(each.flag, each.flag)[2:]
    key = name.replace("-", "_")
    value: Any = True if each.value is None else each.value
    if each.value is not None and (fault := _wrong_word(name, each.value)):
        reading.say(
            Finding("SPC006", f"{each.flag} is {shown(each.value)}; {fault} was wanted", route, help=f"write {fault}")
        )
        return
    if each.value is not None and name in (*SGLANG_INTS, "tp-size", "dp-size"):
        value = int(each.value)
    if key == "model_path":
        reading.around.serves(each.value, in_file=reading.document.form != "argv")
        reading.notes["model_path"] = each.value
    reading.around.args[key] = value
    reading.arg_routes[key] = route


def _wrong_word(name: str, text: str) -> str | None:
    """What another flag wants where its value is of the wrong kind; None where it is right."""
    if name in SGLANG_WORDS:
        return None if text in SGLANG_WORDS[name] else f"one of {', '.join(SGLANG_WORDS[name][:8])}"
    kind = int if name in (*SGLANG_INTS, "tp-size", "dp-size") else float if name in SGLANG_FLOATS else str
    try:
        kind(text)
    except ValueError:
        return "a whole number" if kind is int else "a number"
    return None


def _misuse(reading: Reading, wrong: Misuse, words: _Words, known: dict[str, str]) -> None:
    route = words.routes[wrong.at]
    if wrong.kind == "unknown":
        reading.say(_unknown(reading, wrong.token, words, wrong.at, route, known))
        return
    replaced = REMOVED_FLAGS.get(wrong.token)
    ambiguous = f"write {replaced or 'the flag in full'}"
    stray = "switches take no value; the model goes to --model-path"
    reading.say(misused(wrong, route, typed=wrong.token, ambiguous=ambiguous, stray=stray))


def _unknown(reading: Reading, token: str, words: _Words, at: int, route: Route, known: dict[str, str]) -> Finding:
    message = f"SGLang {reading.release} has no flag {token}"
    if "_" in token and token.replace("_", "-") in known:
        right = token.replace("_", "-")
        return Finding(
            "SPC007", message, route, help=f"write {right}: SGLang's flags have hyphens only", fix=Fix(route, right)
        )
    if token in REMOVED_FLAGS or token.startswith("--speculative-lookahead-"):
        successor = REMOVED_FLAGS.get(token)
        if token == "--speculative-config":
            return Finding(
                "SPC007",
                message,
                route,
                help="that is vLLM's JSON; SGLang takes --speculative-algorithm and its kin "
                "(specctl convert --to sglang writes them)",
            )
        if token.startswith("--speculative-lookahead-"):
            successor = "--speculative-algorithm NGRAM and its --speculative-ngram-* flags"
        return Finding(
            "SPC007",
            message,
            route,
            help=f"write {successor}" if successor else "nothing takes its place; leave it out",
        )
    value = words.texts[at + 1] if at + 1 < len(words.texts) else None
    foreign = explain_key(token, int(value) if value and value.isdecimal() else value, ENGINE)
    near = nearest(token, known)
    return Finding("SPC007", message, route, help=foreign or (f"did you mean {near}?" if near else None))
