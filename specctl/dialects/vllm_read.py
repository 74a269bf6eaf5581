"""Reads vLLM's settings out of every carrier: JSON, command line, `--config` YAML, Python keyword arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specctl.diagnostics import Fix, Route
from specctl.dialects import coerce as types
from specctl.dialects.field import Field, assemble, by_key, has_path
from specctl.dialects.foreign import explain_key
from specctl.dialects.reading import Finding, Reading, Surroundings, coerce, nearest, shown
from specctl.dialects.vllm import ENGINE, LOAD_CONFIG_KEYS, METHOD_NAMES, REMOVED_KEYS, ROWS, cut_off
from specctl.dialects.vllm_argv import from_argv
from specctl.dialects.vllm_carriers import Carrier, from_python, from_value, from_yaml
from specctl.dialects.vllm_resolve import resolve
from specctl.source import Document
from specctl.spec import METHODS, Method, Origin, SpecDecodeConfig
from specctl.spec.methods import Ngram, Pard


def read(document: Document, around: Surroundings, release: str, form: str) -> Reading:
    """The reading of a document; `form` is `json`, `argv`, `yaml` or `python`."""
    reading = Reading(ENGINE, ENGINE, release, document, around)
    carrier = {"argv": from_argv, "yaml": from_yaml, "python": from_python}.get(form, from_value)(reading)
    reading.document = carrier.document
    reading.off = not carrier.present
    if not reading.blocked:
        _keys(reading, carrier)
        resolve(reading)
        reading.spec = _spec(reading)
    return reading


def _keys(reading: Reading, carrier: Carrier) -> None:
    """Turn entries into values: dashes, aliases, unknown keys, types."""
    known = by_key(ROWS, reading.release)
    for key, raw, route in carrier.entries:
        name = key.replace("-", "_")
        row = known.get(name)
        if row is None:
            reading.say(unknown_key(reading, key, raw, route, list(known)))
            continue
        if name in reading.values and reading.values[name].route != route:
            reading.say(
                Finding(
                    "SPC004",
                    f"{name} is given twice, once with dashes; the later one wins",
                    route,
                    at_key=True,
                    severity="warning",
                    help="keep one of them",
                )
            )
        value = coerce(reading, row, raw, route, types.LAX)
        reading.values[name] = value
    _load_config(reading)
    _method_name(reading)


def unknown_key(reading: Reading, key: str, raw: Any, route: Route, known: list[str]) -> Finding:
    """The finding for a key that the release does not know, with the best guess at what was meant."""
    name = key.replace("-", "_")
    if name in REMOVED_KEYS:
        successor = REMOVED_KEYS[name]
        return _removed(key, raw, route, successor, reading.release)
    foreign = explain_key(key, raw, "vllm")
    if foreign:
        return Finding("SPC005", f"vLLM {reading.release} has no key {key!r}", route, at_key=True, help=foreign)
    near = nearest(name.replace(" ", "_"), known)
    fix = Fix(route, key=near, replacement=raw) if near else None
    help_text = f"did you mean {near!r}?" if near else f"its keys are {', '.join(known[:8])}, ..."
    return Finding("SPC005", f"vLLM {reading.release} has no key {key!r}", route, at_key=True, help=help_text, fix=fix)


def _removed(key: str, raw: Any, route: Route, successor: str | None, release: str) -> Finding:
    message = f"vLLM {release} has no key {key!r} (an older or another program's name)"
    if successor == "num_speculative_tokens_per_batch_size":
        return Finding("SPC005", message, route, at_key=True, help=cut_off(raw))
    if successor is None:
        return Finding(
            "SPC005",
            message,
            route,
            at_key=True,
            help="nothing takes its place; leave it out",
            fix=Fix(route, remove=True),
        )
    if key == "draft_model":
        return Finding(
            "SPC005",
            message,
            route,
            at_key=True,
            fix=Fix(route, key="model", replacement=raw),
            help=f'draft_model is a value of "method"; the draft itself is "model": {shown(raw)}',
        )
    fix = Fix(route, key=successor, replacement=raw) if successor not in ("method", "rejection_sample_method") else None
    help_text = 'write "method": "suffix"' if key == "enable_suffix_decoding" else f"write {successor!r} instead"
    return Finding("SPC005", message, route, at_key=True, help=help_text, fix=fix)


def _load_config(reading: Reading) -> None:
    found = reading.values.get("draft_load_config")
    if found is None or not isinstance(found.value, dict):
        return
    for key in found.value:
        if key not in LOAD_CONFIG_KEYS:
            near = nearest(str(key), LOAD_CONFIG_KEYS)
            reading.say(
                Finding(
                    "SPC005",
                    f"draft_load_config has no key {key!r}",
                    (*found.route, key),
                    at_key=True,
                    help=f"did you mean {near!r}?" if near else f"its keys are {', '.join(LOAD_CONFIG_KEYS)}",
                )
            )


def _method_name(reading: Reading) -> None:
    found = reading.values.get("method")
    if found is None or not found.good or found.value is None or found.value in METHOD_NAMES:
        return
    reading.values["method"] = replace(found, good=False)
    reading.notes["bad_method"] = True
    text = str(found.value)
    near = method_guess(text)
    help_text = f'did you mean "{near}"? names are case-sensitive' if near else f"methods are {', '.join(_MAIN)}"
    reading.say(
        Finding(
            "SPC101",
            f"{text!r} is no method of vLLM {reading.release}",
            found.route,
            help=help_text,
            fix=Fix(found.route, near) if near else None,
        )
    )


_MAIN = tuple(name for name in METHOD_NAMES if not name.endswith("_mtp"))
_SYNONYMS = {
    "standalone": "draft_model",
    "draft": "draft_model",
    "drafttarget": "draft_model",
    "assisted": "draft_model",
    "speculators": "eagle3",
    "p_eagle": "eagle3",
    "peagle": "eagle3",
    "nextn": "mtp",
    "arctic": "suffix",
    "promptlookup": "ngram",
    "prompt_lookup": "ngram",
    "lookahead": "ngram",
    "[ngram]": "ngram",
    "draft_target": "draft_model",
    "pard": "draft_model",
}


def method_guess(text: str) -> str | None:
    """The method that a wrong name most likely means."""
    low = text.strip().lower().replace("-", "_").replace(" ", "_")
    if low in METHOD_NAMES:
        return low
    if low in _SYNONYMS:
        return _SYNONYMS[low]
    return "mtp" if low.endswith("_mtp") else nearest(low, _MAIN)


def _spec(reading: Reading) -> SpecDecodeConfig | None:
    """The canonical spec; None where speculation is off or the method is unknown."""
    method = reading.notes.get("method")
    if (reading.off and reading.notes.get("served") is None) or reading.notes.get("bad_method") or method is None:
        return None
    found: dict[str, Any] = {}
    carried: dict[str, Any] = {}
    instance = _method(reading, METHODS[METHOD_NAMES.get(_written(reading, method), "draft_model")])
    for key, value in reading.values.items():
        if value.value is None or not value.good or key in ("method", "tensor_parallel_size"):
            continue
        path, loaded = value.row.path, value.value
        if value.row.load:
            loaded = value.row.load(loaded)
        if key == "draft_load_config" and list(value.value) == ["load_format"]:
            found["draft.load_format"] = value.value["load_format"]
        elif path is None or not has_path(type(instance), path) or _foreign_word(value.row, loaded):
            carried[key] = value.value
        elif loaded is not None:
            found[path] = loaded
    return _finish(reading, instance, found, carried)


def _foreign_word(row: Field, loaded: Any) -> bool:
    """Whether a word is none that the writer knows; it is carried as it is."""
    return loaded is not None and row.dump is not None and row.dump(loaded) is None


def _written(reading: Reading, resolved: str) -> str:
    """The method as the user meant it: as written, else as resolved."""
    written = reading.get("method")
    return resolved if written is None or reading.notes.get("served") else str(written)


def _method(reading: Reading, found: type[Method]) -> Method:
    if found is Ngram:
        low, high = reading.effective.get("prompt_lookup_min"), reading.effective.get("prompt_lookup_max")
        return Ngram(low or 5, high or 5, on_device=reading.notes["method"] == "ngram_gpu")
    if found.name == "draft_model" and reading.get("parallel_drafting", False):
        return Pard()
    return found()


def _finish(reading: Reading, method: Method, found: dict[str, Any], carried: dict[str, Any]) -> SpecDecodeConfig:
    if isinstance(method, Ngram):
        found.pop("method.prompt_lookup_min", None)
        found.pop("method.prompt_lookup_max", None)
    if isinstance(method, Pard):
        carried.pop("parallel_drafting", None)
    model = found.pop("model", None)
    if not (method.needs_model or method.optional_model) and model is not None:
        if model not in ("ngram", "[ngram]"):
            carried["model"] = model
        model = None
    layers = _layer_ids(carried.get("draft_model_config"))
    if method.name == "extract_hidden_states" and layers:
        found["method.aux_layers"] = layers
        carried.pop("draft_model_config")
    if reading.notes.get("served") is not None:
        model = reading.notes["served"].name
    found.setdefault("num_speculative_tokens", reading.effective.get("num_speculative_tokens"))
    options = {ENGINE: carried} if carried else {}
    origin = Origin(reading.document.source, ENGINE, reading.release)
    return assemble(method, found, model=model, engine_options=options, origin=origin)


def _layer_ids(config: Any) -> tuple[int, ...] | None:
    """The layer ids of extract_hidden_states where its internal field holds nothing else."""
    inner = config.get("hf_config") if isinstance(config, dict) and list(config) == ["hf_config"] else None
    if isinstance(inner, dict) and list(inner) == ["eagle_aux_hidden_state_layer_ids"]:
        ids = inner["eagle_aux_hidden_state_layer_ids"]
        if isinstance(ids, list) and ids and all(isinstance(each, int) for each in ids):
            return tuple(ids)
    return None
