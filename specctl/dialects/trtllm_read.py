"""Reads TensorRT-LLM's YAML (or the mapping inside it), and a `trtllm-serve` command line that names one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from specctl.diagnostics import Fix, Route
from specctl.dialects import coerce as types
from specctl.dialects.coerce import BadValue, lax_float
from specctl.dialects.field import by_key
from specctl.dialects.foreign import explain_key
from specctl.dialects.reading import Finding, Reading, Surroundings, coerce, missing_file, nearest, shown
from specctl.dialects.trtllm import ENGINE, MOVED, ROWS, TYPES
from specctl.dialects.trtllm import types as type_names
from specctl.dialects.trtllm_flags import merge_flags
from specctl.dialects.trtllm_keys import BACKENDS, ROOT_KEYS
from specctl.dialects.trtllm_line import is_new
from specctl.dialects.trtllm_resolve import resolve
from specctl.dialects.trtllm_spec import build
from specctl.errors import MissingError
from specctl.source import Document, read_file, read_yaml
from specctl.source.command import entry_of
from specctl.spec.release import KNOWN_RELEASES

KEY = "speculative_config"
_FLAGS = {
    "--tp_size": "tensor_parallel_size",
    "--pp_size": "pipeline_parallel_size",
    "--tensor_parallel_size": "tensor_parallel_size",
}


def read(document: Document, around: Surroundings, release: str, form: str) -> Reading:
    """The reading of a document; `form` is `yaml`, `json`, `python` or `argv`."""
    reading = Reading(ENGINE, ENGINE, release, document, around)
    reading.notes["flags"] = {key: value for key, value in around.args.items() if value is not None}
    if form == "argv":
        _argv(reading)
    if not reading.document.readable:
        reading.blocked = True
    elif not reading.blocked:
        _root(reading)
    if not reading.blocked:
        resolve(reading)
        reading.spec = build(reading)
    return reading


def _argv(reading: Reading) -> None:
    tokens: list[str] = reading.document.value
    _, skip, positionals = entry_of(tokens)
    file: tuple[str, int] | None = None
    at = skip
    while at < len(tokens):
        name, equals, value = tokens[at].partition("=")
        if not name.startswith("--"):
            if positionals and not reading.notes.get("positional"):
                reading.around.serves(tokens[at])
                reading.notes["positional"] = True
            at += 1
            continue
        has_value = not equals and at + 1 < len(tokens) and not tokens[at + 1].startswith("--")
        value = value if equals else tokens[at + 1] if has_value else "true"
        if name in ("--config", "--extra_llm_api_options"):
            file = (value, at + 1 if has_value else at)
        elif name.startswith(("--speculative", "--spec")):
            reading.say(
                Finding(
                    "SPC007",
                    f"TensorRT-LLM has no flag {name}; speculation is set in the file only",
                    (at,),
                    help="write speculative_config: into the YAML of --config",
                )
            )
        else:
            key = _FLAGS.get(name, name[2:].replace("-", "_"))
            number = int(value) if value.isdecimal() else float(value) if re.fullmatch(r"\d*\.\d+", value) else None
            reading.notes["flags"][key] = value if number is None else number
        at += 2 if has_value else 1
    _open(reading, file)


def _open(reading: Reading, file: tuple[str, int] | None) -> None:
    if file is None:
        reading.off, reading.document.value = True, {}
        reading.notes["no_file"] = True
        return
    try:
        document = read_file(Path(file[0]))
    except MissingError as error:
        reading.say(missing_file(reading, error, (file[1],)))
        reading.blocked = True
        return
    read_yaml(document)
    document.problems = reading.document.problems + document.problems
    reading.document = document


def _root(reading: Reading) -> None:
    """The root: a mapping of arguments. A mapping that is itself the setting is taken as such."""
    value, new = reading.document.value, is_new(reading.release)
    if value is None:
        if not new:
            reading.say(
                Finding(
                    "SPC011",
                    "the file is empty; TensorRT-LLM 1.2.1 stops with a type error",
                    (),
                    help="write at least one argument, or do not give the file",
                )
            )
            reading.blocked = True
        reading.off = True
        return
    if not isinstance(value, dict):
        reading.say(
            Finding(
                "SPC011",
                f"the file's root is {shown(value)}; a mapping of arguments was wanted",
                (),
                help=f"write {KEY}: and the keys below it, indented by two blanks",
            )
        )
        reading.blocked = True
        return
    if KEY not in value and "decoding_type" in value:
        _setting(reading, value, ())
        return
    for key, item in value.items():
        if key != KEY:
            _root_key(reading, str(key), item)
    merge_flags(reading)
    _nested(reading)
    if KEY not in value or (value[KEY] is None and new):
        reading.off = True
    else:
        _setting(reading, value[KEY], (KEY,))


def _root_key(reading: Reading, key: str, item: Any) -> None:
    if key == "model" and not reading.notes.get("positional"):
        reading.around.serves(item, in_file=True)
    if key in ROOT_KEYS:
        reading.around.args[key] = item
        reading.arg_routes[key] = (key,)
        reading.notes.setdefault("file_keys", set()).add(key)
        return
    known = [*ROOT_KEYS, KEY]
    near = nearest(key, known)
    if key in (
        "speculative",
        "speculative_decoding_config",
        "spec_config",
        "speculative-config",
        "speculative_decoding",
    ):
        near = KEY
    reading.say(
        Finding(
            "SPC005",
            f"TensorRT-LLM has no argument {key!r}",
            (key,),
            at_key=True,
            help=f"did you mean {near}?" if near else "leave it out",
            fix=Fix((key,), key=near, replacement=item) if near else None,
        )
    )


def _nested(reading: Reading) -> None:
    cache = reading.around.args.get("kv_cache_config")
    if isinstance(cache, dict) and cache.get("free_gpu_memory_fraction") is not None:
        try:
            fraction = lax_float(cache["free_gpu_memory_fraction"])
        except BadValue:
            fraction = -1.0
        if not 0 <= fraction <= 1:
            reading.say(
                Finding(
                    "SPC104",
                    f"free_gpu_memory_fraction is {shown(cache['free_gpu_memory_fraction'])}; 0 to 1 was wanted",
                    ("kv_cache_config", "free_gpu_memory_fraction"),
                    help="write 0.9",
                )
            )
    sampler = reading.around.args.get("sampler_type")
    if sampler is not None and is_new(reading.release):
        if sampler in ("auto", "TorchSampler"):
            reading.change("SPC323", "sampler_type", sampler, None, "this release has no such argument any more")
        else:
            text = f"sampler_type is {shown(sampler)}; this release takes auto or TorchSampler, and ignores it"
            reading.say(Finding("SPC105", text, ("sampler_type",), help="leave it out"))
    backend = reading.around.args.get("backend")
    if backend is not None and backend not in BACKENDS:
        reading.say(
            Finding(
                "SPC105",
                f"backend is {shown(backend)}; it takes pytorch, tensorrt or _autodeploy",
                ("backend",),
                help="leave it out",
            )
        )


def _setting(reading: Reading, value: Any, base: Route) -> None:
    if not isinstance(value, dict):
        kind = "null" if value is None else "a list" if isinstance(value, list) else shown(value)
        reading.say(
            Finding(
                "SPC011",
                f"{KEY} is {kind}; a mapping of keys was wanted",
                base,
                help="write the keys below it, indented by two blanks, without a dash",
            )
        )
        reading.blocked = True
        return
    name = value.get("decoding_type")
    known = type_names(reading.release)
    if not isinstance(name, str) or name not in known:
        _bad_type_name(reading, value, name, base)
        return
    rows = by_key(ROWS, reading.release, name)
    for key, raw in value.items():
        row = rows.get(str(key))
        route = (*base, key)
        if row is None:
            reading.say(_unknown(reading, str(key), raw, route, name, list(rows)))
        else:
            reading.values[row.key] = coerce(reading, row, raw, route, types.LAX)
    _add_on(reading)
    reading.notes["type"] = name
    reading.notes["method"] = known[name]


def _add_on(reading: Reading) -> None:
    """The keys of `sa_config`, the suffix automaton beside a draft."""
    found = reading.values.get("sa_config")
    if found is None or not isinstance(found.value, dict):
        return
    for key, raw in found.value.items():
        route = (*found.route, key)
        if key not in ("threshold", "enable_global_pool"):
            near = nearest(str(key), ("threshold", "enable_global_pool"))
            help_text = f"did you mean {near}?" if near else "its keys are threshold and enable_global_pool"
            reading.say(Finding("SPC005", f"sa_config has no key {key!r}", route, at_key=True, help=help_text))
        elif key == "threshold" and (isinstance(raw, (int, float)) and raw <= 0):
            reading.say(Finding("SPC104", f"threshold is {shown(raw)}; at least 1 was wanted", route, help="write 4"))


def _bad_type_name(reading: Reading, value: dict[Any, Any], name: Any, base: Route) -> None:
    route = (*base, "decoding_type")
    reading.notes["bad_type"] = True
    reading.blocked = True
    if name is None:
        near = next((key for key in value if str(key).lower().replace("-", "_") == "decoding_type"), None)
        foreign = "method" in value
        help_text = (
            "write decoding_type, with an underscore"
            if near
            else (
                "that is vLLM's spelling; specctl convert --to trtllm writes TensorRT-LLM's"
                if foreign
                else f"add decoding_type: one of {', '.join(type_names(reading.release))}"
            )
        )
        reading.say(Finding("SPC101", "decoding_type is missing", base, help=help_text))
        return
    reading.say(
        Finding(
            "SPC101",
            f"{shown(name)} is no decoding_type of TensorRT-LLM {reading.release}",
            route,
            help=type_help(str(name), reading.release),
            fix=_type_fix(str(name), reading.release, route),
        )
    )


_SAME = {
    "DraftTarget": "Draft_Target",
    "Draft_Target": "DraftTarget",
    "UserProvided": "User_Provided",
    "User_Provided": "UserProvided",
    "Eagle3": "Eagle",
}
_MEANT = {
    "draft_model": "draft_model",
    "standalone": "draft_model",
    "drafttarget": "draft_model",
    "ngram": "ngram",
    "eagle3": "eagle3",
    "eagle": "eagle3",
    "mtp": "mtp",
    "nextn": "mtp",
    "dflash": "dflash",
    "pard": "pard",
    "dspark": "dspark",
    "sa": "suffix_automaton",
    "suffix": "suffix_automaton",
    "auto": "auto",
    "medusa": "medusa",
    "lookahead": "lookahead",
    "prompt_lookup": "ngram",
}


def right_type(name: str, release: str) -> str | None:
    """The spelling of this release that a wrong one means."""
    known = type_names(release)
    if _SAME.get(name) in known:
        return _SAME[name]
    method = _MEANT.get(name.lower().replace("-", "_")) or _MEANT.get(name.lower().replace("-", "").replace("_", ""))
    found = next((spelling for spelling, canonical in reversed(known.items()) if canonical == method), None)
    return found or nearest(name, known)


def type_help(name: str, release: str) -> str:
    """What to write instead, and which other release takes the name as it stands."""
    right = right_type(name, release)
    other = next((known for known in KNOWN_RELEASES[ENGINE] if known != release and name in type_names(known)), None)
    parts = (
        [f"write decoding_type: {right}"]
        if right
        else []
        if name in TYPES
        else [f"types are {', '.join(type_names(release))}"]
    )
    if other:
        parts.append(f"release {other} takes {name} (--release {other})")
    return "; ".join(parts)


def _type_fix(name: str, release: str, route: Route) -> Fix | None:
    right = right_type(name, release)
    return Fix(route, right) if right else None


def _same_type(name: str, release: str, other: str) -> str | None:
    """The spelling in another release of what `name` means in this one."""
    method = type_names(release).get(name)
    return next((each for each, meant in reversed(type_names(other).items()) if meant == method), name)


def _unknown(reading: Reading, key: str, raw: Any, route: Route, name: str, known: list[str]) -> Finding:
    message = f"{name} has no key {key!r} in TensorRT-LLM {reading.release}"
    if key in MOVED:
        return Finding("SPC005", message, route, at_key=True, help=f"write {MOVED[key]}")
    other = [
        release
        for release in KNOWN_RELEASES[ENGINE]
        if release != reading.release and key in by_key(ROWS, release, _same_type(name, reading.release, release))
    ]
    near = nearest(key, known)
    foreign = explain_key(key, raw, ENGINE)
    if foreign:
        return Finding("SPC005", message, route, at_key=True, help=foreign)
    if near and near != key:
        return Finding(
            "SPC005",
            message,
            route,
            at_key=True,
            help=f"did you mean {near}?",
            fix=Fix(route, key=near, replacement=raw),
        )
    if other:
        return Finding(
            "SPC005",
            message,
            route,
            at_key=True,
            help=f"leave it out; release {other[0]} has it (--release {other[0]})",
        )
    owners = [each for each in type_names(reading.release) if key in by_key(ROWS, reading.release, each)]
    why = f"it is a key of {' and '.join(owners[:3])}; leave it out" if owners else "leave it out"
    return Finding("SPC005", message, route, at_key=True, help=why, fix=Fix(route, remove=True))
