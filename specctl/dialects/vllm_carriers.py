"""What carries vLLM's settings, taken apart as vLLM itself does it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from specctl.diagnostics import Fix, Route, Span
from specctl.dialects.foreign import explain_key
from specctl.dialects.reading import Finding, Reading, nearest, shown
from specctl.dialects.vllm import ROWS
from specctl.dialects.vllm_flags import VLLM_FLAGS
from specctl.source import Document, read_json

SHORT_KEYS = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
_HUMAN = re.compile(r"^(\d+(?:\.\d+)?)([kKmMgGtT])$")
_POWERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
LLM_ARGUMENTS = frozenset(name.replace("-", "_") for name in VLLM_FLAGS) | {
    "model",
    "tokenizer",
    "compilation_config",
}
_OFF_WORDS = ("", "None", "null")


@dataclass
class Carrier:
    """The entries of the setting in their order, and whether there is a setting at all."""

    document: Document
    entries: list[tuple[str, Any, Route]] = field(default_factory=list)
    present: bool = False


def from_value(reading: Reading) -> Carrier:
    """A JSON or Python value that stands for the whole `--speculative-config`."""
    carrier = Carrier(reading.document)
    if not reading.document.readable:
        reading.blocked = True
    elif reading.document.value is not None:
        _object(reading, carrier, reading.document.value, ())
    elif reading.document.text.strip() not in ("", "null"):
        reading.blocked = True
    return carrier


def _object(reading: Reading, carrier: Carrier, value: Any, route: Route) -> None:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", bool: "a truth value"}.get(type(value), "a number")
        help_text = 'write {"method": ..., "num_speculative_tokens": ...}'
        fix = None
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            help_text, fix = "leave out the brackets around the object", Fix(route, value[0])
        elif isinstance(value, str) and value.lstrip().startswith("{"):
            help_text = "the JSON was encoded twice; leave out the outer quotes and backslashes"
        reading.say(
            Finding(
                "SPC011",
                f"the setting is {kind}, {shown(value)}; an object with keys was wanted",
                route,
                help=help_text,
                fix=fix,
            )
        )
        reading.blocked = True
        return
    carrier.present = True
    carrier.entries += [(str(key), item, (*route, key)) for key, item in value.items()]


def from_python(reading: Reading) -> Carrier:
    """Keyword arguments of `LLM(...)`."""
    carrier = Carrier(reading.document)
    value = reading.document.value
    if not isinstance(value, dict):
        _object(reading, carrier, value, ())
        return carrier
    short: dict[str, tuple[Any, Route]] = {}
    for key, item in value.items():
        if key == "speculative_config":
            if item is not None:
                _object(reading, carrier, item, (key,))
        elif key in SHORT_KEYS:
            short[SHORT_KEYS[key]] = (item, (key,))
        elif key in LLM_ARGUMENTS:
            if key == "model":
                reading.around.serves(item, in_file=True)
            reading.around.args.setdefault(key, item)
        else:
            near = nearest(key, [*LLM_ARGUMENTS, "speculative_config", *SHORT_KEYS])
            reading.say(
                Finding(
                    "SPC005",
                    f"LLM() has no argument {key!r}",
                    (key,),
                    at_key=True,
                    help=f"did you mean {near!r}?" if near else "settings of speculation go into speculative_config",
                )
            )
    add_short(reading, carrier, short)
    return carrier


def add_short(reading: Reading, carrier: Carrier, short: dict[str, tuple[Any, Route]]) -> None:
    """Join `--spec-method` and its kin with the object; a key in both places is refused."""
    for key, (item, route) in short.items():
        if item is None:
            continue
        if any(name == key for name, _, _ in carrier.entries):
            flag = next(flag for flag, target in SHORT_KEYS.items() if target == key)
            reading.say(
                Finding(
                    "SPC009",
                    f"{key} is given twice: by --{flag.replace('_', '-')} and inside the config",
                    route,
                    help=f"keep one of them; inside the config the key is {key!r}",
                )
            )
            continue
        carrier.present = True
        carrier.entries.append((key, item, route))


def from_yaml(reading: Reading) -> Carrier:
    """A `--config` YAML file: flags by their long names, the setting nested, as JSON text, or dotted."""
    document = reading.document
    carrier = Carrier(document)
    if not document.readable:
        reading.blocked = True
        return carrier
    if document.value is None:
        return carrier
    if not isinstance(document.value, dict):
        _object(reading, carrier, document.value, ())
        return carrier
    yaml_entries(reading, carrier, document.value)
    return carrier


def yaml_entries(reading: Reading, carrier: Carrier, mapping: dict[Any, Any]) -> None:
    short: dict[str, tuple[Any, Route]] = {}
    dotted: dict[str, tuple[Any, Route]] = {}
    slipped = _slipped(reading, mapping)
    for key, item in mapping.items():
        name = str(key).replace("-", "_")
        if key in slipped:
            continue
        if name == "speculative_config":
            _yaml_config(reading, carrier, item, (key,))
        elif name.startswith("speculative_config."):
            dotted[name.split(".", 1)[1]] = (item, (key,))
        elif name in SHORT_KEYS:
            short[SHORT_KEYS[name]] = (item, (key,))
        else:
            _yaml_other(reading, str(key), name, item)
    if dotted:
        carrier.entries, carrier.present = [(key, item, route) for key, (item, route) in dotted.items()], True
    add_short(reading, carrier, short)


def _slipped(reading: Reading, mapping: dict[Any, Any]) -> list[Any]:
    """Keys of the setting that stand at the root of the file, where flags belong; said once for all."""
    flags = {flag.replace("-", "_") for flag in VLLM_FLAGS} | {*SHORT_KEYS, "model"}
    own = {row.key for row in ROWS}
    slipped = [key for key in mapping if str(key).replace("-", "_") in own - flags]
    if not slipped:
        return []
    alone = all(str(key).replace("-", "_") in own for key in mapping)
    names = ", ".join(map(str, slipped[:6]))
    reading.say(
        Finding(
            "SPC007",
            f"{names}: at the root of the file a key is a flag, and vLLM has no such flag",
            (slipped[0],),
            at_key=True,
            help="indent the keys of the setting by two blanks below a line speculative-config:",
            fix=Fix((), {"speculative-config": dict(mapping)}) if alone else None,
        )
    )
    return slipped


def _yaml_other(reading: Reading, key: str, name: str, item: Any) -> None:
    known = {flag.replace("-", "_") for flag in VLLM_FLAGS}
    if name in ("model", "model_tag"):
        reading.around.serves(item, in_file=True)
    if name in known or name in ("model", "model_tag"):
        reading.around.args.setdefault(name, item)
        reading.arg_routes.setdefault(name, (key,))
        return
    near = nearest(name, [*known, "speculative_config", *SHORT_KEYS])
    help_text = explain_key(key, item, "vllm") or (f"did you mean {near.replace('_', '-')!r}?" if near else None)
    reading.say(Finding("SPC007", f"vLLM {reading.release} has no flag --{key}", (key,), at_key=True, help=help_text))


def _yaml_config(reading: Reading, carrier: Carrier, item: Any, route: Route) -> None:
    if item is None:
        reading.change(
            "SPC324",
            "speculative_config",
            None,
            None,
            "the block has no values: speculation stays off without a message",
            "indent the keys below it by two blanks",
        )
        return
    if isinstance(item, str):
        span = reading.document.span(route)
        json_text(reading, carrier, item, _text_offset(reading.document, span, item))
        return
    _object(reading, carrier, item, route)


def _text_offset(document: Document, span: Span | None, item: str) -> int:
    """Where a JSON text that is a YAML scalar begins in the document; 0 where it was folded or escaped."""
    if span is None:
        return 0
    start = sum(len(line) + 1 for line in document.text.split("\n")[: span.line - 1]) + span.column - 1
    found = document.text.find(item, start, start + len(item) + 2)
    return found if found >= 0 else -1


def json_text(reading: Reading, carrier: Carrier, text: str, base: int) -> None:
    """The value of `--speculative-config`: JSON, or one of the words that leave speculation off."""
    if text.strip() in _OFF_WORDS:
        reading.change(
            "SPC324",
            "speculative_config",
            text,
            None,
            "speculation stays off without a message",
            "give a JSON object, or leave the flag out",
        )
        carrier.entries, carrier.present = [], False
        return
    document = reading.document
    part = document if base >= 0 else Document(document.source, text, "json")
    part.value = None
    before = len(part.problems)
    read_json(part, base=max(base, 0), text=text)
    if part is not document:
        document.problems += part.problems[before:]
    if not part.readable:
        document.readable = True
        reading.blocked = True
        return
    carrier.entries, carrier.present = [], False
    if part.value is not None:
        _object(reading, carrier, part.value, ())
