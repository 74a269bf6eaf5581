"""A vLLM command line, taken apart as vLLM's own parser does it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from specctl.diagnostics import Route
from specctl.dialects.foreign import explain_key
from specctl.dialects.misuse import misused
from specctl.dialects.reading import Finding, Reading, missing_file, nearest, shown
from specctl.dialects.vllm import REMOVED_FLAGS, ROWS, cut_off
from specctl.dialects.vllm_carriers import SHORT_KEYS, Carrier, add_short, json_text, yaml_entries
from specctl.dialects.vllm_flags import (
    VLLM_FLAGS,
    VLLM_INTS,
    VLLM_NUMBERS,
    VLLM_OBJECTS,
    VLLM_OR_NONE,
    VLLM_SHORT,
    VLLM_SIZES,
    VLLM_WORDS,
)
from specctl.errors import MissingError
from specctl.source import read_file, read_yaml
from specctl.source.command import entry_of
from specctl.source.damage import repaired
from specctl.source.flags import Given, Misuse, parse_options

_HUMAN = re.compile(r"^(\d+(?:\.\d+)?)([kKmMgGtT])$")
_POWERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def from_argv(reading: Reading) -> Carrier:
    """A command line behind `vllm serve MODEL`."""
    document = reading.document
    carrier = Carrier(document)
    tokens: list[str] = document.value
    _, skip, positionals = entry_of(tokens)
    table = flag_table()
    words = [_spelled(token, after) for token, after in zip_longest(tokens, tokens[1:], fillvalue="")]
    for at, word in enumerate(words):
        right = "--" + word.lstrip("-")
        if word.startswith("---") and right.split("=", 1)[0] in table:  # said, and read on as it was meant
            reading.say(unknown_flag(reading, word.split("=", 1)[0], tokens, at))
            words[at] = right
    options, wrong, positional = parse_options(words[skip:], table | _dotted(words), positionals)
    strays = {misuse.at for misuse in wrong if misuse.kind == "stray"}
    for misuse in wrong:
        if misuse.at - 1 in strays and misuse.kind == "stray":
            continue  # the pieces of one torn value are said once
        _misuse(reading, misuse, tokens, skip, _pieces(tokens[skip:], misuse.at, strays))
    _flags(reading, carrier, options, skip)
    for index in positional:  # a word stands above --model and the file
        reading.around.serves(tokens[index + skip])
    return carrier


def flag_table() -> dict[str, str]:
    """vLLM's flags by the number of their values."""
    table = {f"--{name}": kind for name, kind in VLLM_FLAGS.items()}
    table |= {short: VLLM_FLAGS[name] for short, name in VLLM_SHORT.items()}
    return table | dict.fromkeys(
        ("--speculative-config", "-sc", "--spec-method", "--spec-model", "--spec-tokens"), "value"
    )


def _spelled(token: str, after: str) -> str:
    """vLLM reads underscores in a flag as dashes, and `-O3`, `-O=3` and `-O 3` as `--optimization-level 3`."""
    if token.startswith("-O") and token != "-O":
        return "--optimization-level=" + token[2:].removeprefix("=")
    if token == "-O" and after in ("0", "1", "2", "3"):
        return "--optimization-level"
    if not token.startswith("--"):
        return token
    name, equals, value = token.partition("=")
    head, dot, tail = name.partition(".")
    return head.replace("_", "-") + dot + tail + equals + value


def _dotted(tokens: list[str]) -> dict[str, str]:
    names = {token.split("=", 1)[0] for token in tokens if re.match(r"^(--[\w-]+|-[a-z]+)\.[\w.+-]+", token)}
    return dict.fromkeys(names, "value")


def _pieces(tokens: list[str], at: int, strays: set[int]) -> str:
    """The JSON whose pieces begin before the stray word `at`, put together again; empty where they make none."""
    end = at
    while end in strays:
        end += 1
    whole = repaired(" ".join(tokens[max(at - 1, 0) : end]))
    return f": '{whole[1]}'" if whole and at in strays else ""


def _misuse(reading: Reading, wrong: Misuse, tokens: list[str], skip: int, whole: str) -> None:
    token = tokens[wrong.at + skip].split("=", 1)[0]
    if wrong.kind == "unknown":
        reading.say(unknown_flag(reading, token, tokens, wrong.at + skip))
        return
    ambiguous = "write the flag in full; the JSON goes to --speculative-config"
    stray = "quote the whole JSON once, so that it reaches the flag in one piece" + whole
    if not whole and not set("{}\"'") & set(wrong.token):
        stray = "put the flag that it belongs to in front of it, or leave it out"
    reading.say(misused(wrong, (wrong.at + skip,), typed=token, ambiguous=ambiguous, stray=stray))


def unknown_flag(reading: Reading, token: str, tokens: list[str], at: int) -> Finding:
    """The finding for a flag that vLLM does not have, with the line that replaces it where one does."""
    value = tokens[at + 1] if at + 1 < len(tokens) and not tokens[at + 1].startswith("--") else None
    message = f"vLLM {reading.release} has no flag {token}"
    if token in REMOVED_FLAGS:
        key = REMOVED_FLAGS[token]
        if key is None:
            return Finding("SPC007", message + " (removed)", (at,), help="nothing takes its place; leave it out")
        if key == "num_speculative_tokens_per_batch_size":
            limit = int(value) if value and value.isdecimal() else None
            return Finding("SPC007", message + " (removed)", (at,), help=f"in --speculative-config {cut_off(limit)}")
        example = value if value is not None and re.fullmatch(r"\d+", value) else json.dumps(value or "...")
        return Finding(
            "SPC007",
            message + " (removed)",
            (at,),
            help=f"""it is a key now: --speculative-config '{{"{key}": {example}, ...}}'""" + _besides(key),
        )
    if token.lstrip("-") and token.startswith("---"):
        near = nearest("--" + token.lstrip("-"), flag_table())
        return Finding(
            "SPC007", message, (at,), help=f"write {near} with two dashes" if near else "a flag has two dashes"
        )
    foreign = explain_key(token, int(value) if value and value.isdecimal() else value, "vllm")
    if foreign:
        return Finding("SPC007", message, (at,), help=foreign + " of --speculative-config")
    near = nearest(token, flag_table())
    return Finding(
        "SPC007",
        message,
        (at,),
        help=f"did you mean {near}?" if near else "settings of speculation go into --speculative-config '{...}'",
    )


def _besides(key: str) -> str:
    """What must stand beside a key that used to be a flag of its own."""
    if key != "num_speculative_tokens":
        return ""
    return ', beside "method": "mtp" where the target has MTP layers, else beside another method or a draft "model"'


def _flags(reading: Reading, carrier: Carrier, options: list[Given], skip: int) -> None:
    short: dict[str, tuple[Any, Route]] = {}
    dotted: list[Given] = []
    config = [each for each in options if each.flag == "--config"]
    if config:
        _config_file(reading, carrier, config[-1], skip)
    whole = [each for each in options if each.flag in ("--speculative-config", "-sc")]
    for each in options:
        flag, route = each.flag, (each.value_at + skip,)
        if each in whole or each.flag == "--config":
            continue
        if flag.startswith(("--speculative-config.", "-sc.")):
            dotted.append(each)
        elif flag in ("--spec-method", "--spec-model", "--spec-tokens"):
            short[SHORT_KEYS[flag[2:].replace("-", "_")]] = (each.value, route)
        else:
            _other(reading, each, skip)
    if whole:
        _whole(reading, carrier, whole, skip)
    if dotted:
        _dotted_object(reading, carrier, dotted, skip, bool(whole))
    _short_types(reading, short)
    add_short(reading, carrier, short)


def _whole(reading: Reading, carrier: Carrier, whole: list[Given], skip: int) -> None:
    last = whole[-1]
    if len(whole) > 1 or carrier.entries:
        reading.say(
            Finding(
                "SPC004",
                "--speculative-config is given more than once; the last one replaces the others whole",
                (last.at + skip,),
                severity="warning",
                help="keep one of them",
            )
        )
    span = reading.document.values[(last.value_at + skip,)]
    text = last.value or ""
    start = sum(len(line) + 1 for line in reading.document.text.split("\n")[: span.line - 1]) + span.column - 1
    base = reading.document.text.find(text, start) if text else start
    json_text(reading, carrier, text, base)


def _dotted_object(reading: Reading, carrier: Carrier, dotted: list[Given], skip: int, whole: bool) -> None:
    if whole:
        reading.say(
            Finding(
                "SPC004",
                "dotted keys replace the whole JSON of --speculative-config, they do not add to it",
                (dotted[0].at + skip,),
                severity="warning",
                help="put all keys into the JSON",
            )
        )
    found: dict[str, Any] = {}
    reading.blocked = False
    for each in dotted:
        path = each.flag.split(".", 1)[1].split(".")
        at: dict[str, Any] = found
        for part in path[:-1]:
            inner = at.setdefault(part, {})
            at = inner if isinstance(inner, dict) else at
        value = _decode(reading, each, skip)
        if path[-1].endswith("+"):
            at.setdefault(path[-1][:-1], []).extend(str(each.value).split(","))
        else:
            at[path[-1]] = value
        route = (path[0],)
        reading.document.values[route] = reading.document.values[(each.value_at + skip,)]
        reading.document.keys[route] = reading.document.values[(each.at + skip,)]
    carrier.entries = [(key, item, (key,)) for key, item in found.items()]
    carrier.present = True


def _decode(reading: Reading, each: Given, skip: int) -> Any:
    text = each.value or ""
    human = _HUMAN.match(text)
    if human:
        number = int(float(human.group(1)) * _POWERS[human.group(2)])
        reading.say(Finding("SPC010", f"{text} is read as {number}", (each.value_at + skip,), help=f"write {number}"))
        return number
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _short_types(reading: Reading, short: dict[str, tuple[Any, Route]]) -> None:
    """`--spec-tokens` is a number and `--spec-method` one of a list before anything else is read."""
    if "num_speculative_tokens" in short:
        raw, route = short["num_speculative_tokens"]
        try:
            short["num_speculative_tokens"] = (int(raw), route)
        except ValueError:
            reading.say(
                Finding("SPC006", f"--spec-tokens is {shown(raw)}; a whole number was wanted", route, help="write 3")
            )
            del short["num_speculative_tokens"]
            reading.notes["count_unreadable"] = True


def _config_file(reading: Reading, carrier: Carrier, given: Given, skip: int) -> None:
    path = Path(given.value or "")
    if path.suffix not in (".yaml", ".yml"):
        reading.say(
            Finding(
                "SPC012",
                f"--config takes a .yaml or .yml file, not {path.name!r}",
                (given.value_at + skip,),
                help="rename the file to .yaml; JSON is YAML too",
            )
        )
        return
    try:
        document = read_file(path)
    except MissingError as error:
        reading.say(missing_file(reading, error, (given.value_at + skip,)))
        return
    read_yaml(document)
    if not document.readable or not isinstance(document.value, dict):
        reading.document.problems += document.problems
        reading.blocked = reading.blocked or not document.readable
        return
    outer, reading.document = reading.document, document
    yaml_entries(reading, carrier, document.value)
    reading.document = outer
    for _key, _, route in carrier.entries:
        outer.values.setdefault(route, outer.values[(given.value_at + skip,)])


def _other(reading: Reading, each: Given, skip: int) -> None:
    """Another flag of the engine: a surrounding of the setting."""
    name = VLLM_SHORT.get(each.flag, each.flag.lstrip("-")).replace("-", "_")
    reading.arg_routes[name.removeprefix("no_")] = (each.value_at + skip,)
    if each.value is None:
        reading.around.args[name.removeprefix("no_")] = not name.startswith("no_")
        return
    fault = _wrong_value(name.replace("_", "-"), each.value)
    if fault:
        text = f"{each.typed} is {shown(each.value)}; {fault} was wanted"
        reading.say(Finding("SPC006", text, (each.value_at + skip,), help=f"write {fault}"))
    else:
        reading.around.args[name] = _typed(each.value)
    if name == "model":
        reading.around.serves(each.value)
    clean = repaired(each.value) if "{" in each.value else None
    text = clean[1] if clean else each.value
    if _looks_like_setting(text):
        reading.say(_under_another_flag(each, text, clean[0] if clean else "", (each.value_at + skip,)))


def _wrong_value(flag: str, text: str) -> str | None:
    """What another flag wants where its value is none of that; None where it is right."""
    if flag in VLLM_WORDS:
        return None if text in VLLM_WORDS[flag] else f"one of {', '.join(VLLM_WORDS[flag][:8])}"
    if (flag in VLLM_OR_NONE and text in ("", "None")) or (flag == "max-model-len" and text == "auto"):
        return None
    if flag in VLLM_SIZES and _HUMAN.match(text):
        return None
    for flags, what, read in _KINDS:
        if flag in flags:
            try:
                read(text)
            except (ValueError, RecursionError):
                return what
    return None


def _object(text: str) -> None:
    if not isinstance(json.loads(text), dict):
        raise ValueError(text)


_KINDS: tuple[tuple[list[str], str, Callable[[str], Any]], ...] = (
    (VLLM_INTS, "a whole number", int),
    (VLLM_SIZES, "a whole number", int),
    (VLLM_NUMBERS, "a number", float),
    (VLLM_OBJECTS, "a JSON object", _object),
)


def _under_another_flag(each: Given, text: str, damage: str, route: Route) -> Finding:
    """The finding for a setting that another flag got, with all that is wrong in it."""
    notes = []
    try:
        json.loads(each.value or "")
        fate, severity = "there it has no effect", None
    except (ValueError, RecursionError):
        fate, severity = "there it has no effect, and it is not even JSON", "error"
        notes.append(damage)
    known = [row.key for row in ROWS]
    for key in json.loads(text):
        if key.replace("-", "_") not in known:
            near = nearest(key, known)
            notes.append(f"it has no key {key!r}" + (f"; did you mean {near!r}?" if near else ""))
            text = text.replace(json.dumps(key), json.dumps(near or key))
    return Finding(
        "SPC325",
        f"{each.flag} holds what looks like a setting of speculation; {fate}",
        route,
        help=f"give it to --speculative-config '{text}'",
        notes=tuple(notes),
        severity=severity,
    )


def _typed(text: str) -> Any:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    human = _HUMAN.match(text)
    return int(float(human.group(1)) * _POWERS[human.group(2)]) if human else text


def _looks_like_setting(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    keys = {row.key for row in ROWS}
    return isinstance(value, dict) and (
        "num_speculative_tokens" in value or ("method" in value and bool(keys & set(value)))
    )
