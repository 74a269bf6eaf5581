"""From one spelling to another: what a writer cannot say, and reading a setting as another engine would get it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from specctl.dialects import choices, own, sglang, trtllm, vllm
from specctl.dialects.dialect import DIALECTS
from specctl.dialects.field import has_path
from specctl.dialects.foreign import title
from specctl.dialects.native import option_losses
from specctl.dialects.reading import Finding, Reading, Surroundings, shown
from specctl.dialects.render import render
from specctl.dialects.trtllm_line import MAX_BATCH, is_new
from specctl.source import Document, read_json, read_yaml
from specctl.source.command import command_document
from specctl.spec import SpecDecodeConfig

_FORMS = {"vllm": "json", "sglang": "argv", "trtllm": "yaml", "specctl": "yaml"}


def native_method(spec: SpecDecodeConfig, engine: str, release: str) -> str | None:
    """The engine's name of the spec's method; None where it has none."""
    if engine == "vllm":
        return vllm.native_method(spec)
    if engine == "sglang":
        return sglang.algorithm(spec) or spec.engine_options.get("sglang", {}).get("speculative_algorithm")
    if engine == "trtllm" and spec.method.name == "custom_class":
        return None  # its drafter is a Python object that no file can hold
    return trtllm.native_type(spec, release) if engine == "trtllm" else spec.method.name


def document_of(spec: SpecDecodeConfig, engine: str, release: str) -> Document:
    """The native form of a spec as a document that can be read again."""
    output = DIALECTS[engine].write(spec, release)
    if engine == "sglang":
        return command_document(output, "<converted>")
    text = render(output, engine)
    return (
        read_json(Document("<converted>", text, "json"))
        if engine == "vllm"
        else read_yaml(Document("<converted>", text, "yaml"))
    )


def read_back(spec: SpecDecodeConfig, engine: str, release: str, around: Surroundings) -> Reading:
    """The reading of a spec's native form."""
    return DIALECTS[engine].read(document_of(spec, engine, release), around, release, _FORMS[engine])


def reread(reading: Reading, engine: str, release: str) -> Reading:
    """The reading of the same setting after it was written in `engine`'s spelling; what reading said about the
    original stays.
    """
    if reading.spec is None:
        return reading
    spec = reading.spec
    if native_method(spec, engine, release) is None:
        reading.engine, reading.release = engine, release
        reading.findings += lost_in(spec, engine, release)
        return reading
    around = Surroundings(
        reading.around.target, reading.around.args, reading.around.env, reading.around.platform, reading.around.host
    )
    other = read_back(spec, engine, release, around)
    other.dialect = reading.dialect
    other.findings = (
        [_unplaced(finding) for finding in other.findings] + reading.findings + lost_in(spec, engine, release)
    )
    for key, value in other.values.items():
        original = next(
            (each for each in reading.values.values() if each.row.path == value.row.path and value.row.path), None
        )
        other.values[key] = type(value)(
            value.key, value.raw, value.value, original.route if original else (), value.row, value.good
        )
    other.document = reading.document
    other.fallback = reading.fallback
    if other.spec is not None:
        other.spec = replace(other.spec, about=spec.about, target=spec.target)
    return other


def _unplaced(finding: Finding) -> Finding:
    return Finding(
        finding.code, finding.message, (), finding.help, finding.notes, None, False, finding.severity, finding.stage
    )


def lost_in(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    """What is lost or changes its meaning when a spec is written for `engine`: SPC4xx findings."""
    name = native_method(spec, engine, release)
    if name is None:
        where = f"{title(engine)} {release}" if engine != "specctl" else "specctl"
        return [
            Finding(
                "SPC401",
                f"{where} has no counterpart of method {spec.method.name}",
                help=_nearest_method(spec, engine, release),
            )
        ]
    if engine == "specctl":
        return []
    found = [
        Finding(
            "SPC402",
            f"{path} {shown(value)} has no counterpart in {title(engine)} {release} and is left out",
            help=_LOST_HELP.get((path, engine)) or _LOST_HELP.get((path, "")) or "measure without it",
            severity="error" if path == "method.heterogeneous_vocab" else None,
        )
        for path, value in _lost(spec, engine, release)
    ]
    return found + option_losses(spec, engine, release) + _differences(spec, engine, release)


# What to do about a value that the other engine cannot say, by canonical path (and engine).
_LOST_HELP = {
    ("draft.tensor_parallel_size", ""): "its draft runs with the target's tensor parallel size",
    ("draft.max_model_len", ""): "its draft takes the target's context length",
    ("draft.enforce_eager", ""): "CUDA graphs are switched off for target and draft together there",
    ("schedule", "sglang"): "--speculative-adaptive with a file of candidate_steps by batch size is the nearest",
    ("max_concurrency", "sglang"): "--speculative-adaptive with a file of candidate_steps by batch size is the nearest",
    ("max_concurrency", "vllm"): "a schedule that ends with 0 drafted tokens does it: see its schedule key",
    ("acceptance.synthetic_length", "sglang"): "the variable SGLANG_SIMULATE_ACC_LEN takes the same length",
    ("method.heterogeneous_vocab", ""): "choose a draft with the target's vocabulary",
    ("draft.quantization", "trtllm"): "quantize the draft's checkpoint itself; it is read as it is",
    ("draft.revision", "trtllm"): "download that revision and name its folder",
}


def _nearest_method(spec: SpecDecodeConfig, engine: str, release: str) -> str:
    near = {
        ("suffix", "sglang"): "NGRAM is the nearest",
        ("suffix_automaton", "vllm"): "method suffix is the nearest",
        ("suffix", "trtllm"): "SA is the nearest" if is_new(release) else "NGram is the nearest",
        ("eagle", "trtllm"): "its Eagle means EAGLE-3; heads of EAGLE 1 and 2 do not fit",
    }
    return near.get((spec.method.name, engine), "choose another method for this engine")


def _set_paths(spec: SpecDecodeConfig) -> list[tuple[str, Any]]:
    """Every canonical path that differs from its default, with its value."""
    found: list[tuple[str, Any]] = []
    for head, part in (("method", spec.method), ("acceptance", spec.acceptance), ("draft", spec.draft)):
        for row in fields(part):
            value = getattr(part, row.name)
            if value != row.default:
                found.append((f"{head}.{row.name}", value))
    for name in ("draft_sample_method", "schedule", "tree", "max_concurrency"):
        value = getattr(spec, name)
        if value and value != "greedy":
            found.append((name, value))
    return found


# Paths that the writers handle outside their rows.
_HANDLED = {
    "vllm": {"schedule", "draft.load_format", "method.on_device"},
    "sglang": {"tree", "draft_sample_method", "acceptance.method"},
    "trtllm": {"schedule", "tree", "method.shared_pool", "acceptance.method", "method.prompt_lookup_max"},
}


def _lost(spec: SpecDecodeConfig, engine: str, release: str) -> list[tuple[str, Any]]:
    rows = {"vllm": vllm.ROWS, "sglang": sglang.ROWS, "trtllm": trtllm.ROWS}[engine]
    name = native_method(spec, engine, release)
    known = {
        row.path
        for row in rows
        if row.path and row.in_release(release) and (engine != "trtllm" or row.for_method(name))
    }
    known |= _HANDLED[engine]
    if engine == "trtllm" and is_new(release):
        known.add("draft_sample_method")
    if not _takes_tree(spec, engine, release, name):
        known.discard("tree")
    lost = [
        (path, value)
        for path, value in _set_paths(spec)
        if path not in known or not _sayable(spec, engine, rows, path, value)
    ]
    return [(path, _plain(value)) for path, value in lost if path not in _DIFFERENT]


def _takes_tree(spec: SpecDecodeConfig, engine: str, release: str, name: str | None) -> bool:
    """Whether the engine has the setting's kind of tree: SGLang no static ones, TensorRT-LLM each for some types."""
    static = spec.tree is not None and bool(spec.tree.choices)
    if engine != "trtllm":
        return not static
    if static:
        return name in choices.KEYS and not is_new(release)
    return name in (trtllm.TREES if is_new(release) else trtllm.EAGLES)


# Paths whose loss is told by `_differences` in words of its own.
_DIFFERENT = {"method.prompt_lookup_min", "method.prompt_lookup_max", "method.search", "method.shared_pool"}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and value and hasattr(value[0], "as_list"):
        return [step.as_list() for step in value]
    return value.as_dict() if hasattr(value, "as_dict") else value


def _sayable(spec: SpecDecodeConfig, engine: str, rows: tuple[Any, ...], path: str, value: Any) -> bool:
    """Whether the engine has the very word; a path of the method must exist there, too."""
    if path == "acceptance.method":
        words = {"vllm": ("block", "synthetic"), "sglang": ("block",), "trtllm": ("relaxed",)}
        return value in words[engine]
    here = [row for row in rows if row.path == path]
    said = [row.dump(value) if row.dump else value for row in here]
    if path == "draft.quantization" and value == "unquant":
        return True  # what the other engines do by themselves
    if here and not path.startswith("schedule") and all(word is None for word in said):
        return False
    allowed = [(word, row.choices) for row, word in zip(here, said, strict=True) if row.choices]
    if allowed and isinstance(value, str):
        return any(word in words for word, words in allowed)
    return bool(path.startswith("method.") or has_path(type(spec.method), path))


def _differences(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    """Same word, other meaning."""
    method = spec.method
    found: list[Finding] = []
    if method.name == "ngram":
        found += _ngram(spec, engine)
    if engine == "sglang" and spec.draft.quantization is None and spec.model is not None and method.name != "ngram":
        found.append(
            Finding(
                "SPC404",
                "SGLang's draft takes over the target's --quantization",
                severity="advice",
                help="add --speculative-draft-model-quantization unquant where the draft is not quantized",
            )
        )
    if engine == "trtllm" and spec.max_concurrency is None and spec.schedule and spec.schedule[0].first != 1:
        found.append(
            Finding(
                "SPC404",
                f"TensorRT-LLM's schedule begins at batch size 1, this one at {spec.schedule[0].first}",
                help="begin the schedule at 1",
            )
        )
    last = spec.schedule[-1] if spec.schedule else None
    if engine == "trtllm" and is_new(release) and last is not None and last.num_speculative_tokens > 0:
        last = max(spec.schedule, key=lambda step: step.first)
        end = last.last or MAX_BATCH
        found.append(
            Finding(
                "SPC404",
                f"above batch size {end} TensorRT-LLM {release} stops drafting; "
                f"here {last.num_speculative_tokens} tokens were drafted without an end",
                help="raise the last key of draft_len_schedule to your max_batch_size",
                severity="advice" if last.last is None else None,
            )
        )
    if engine == "vllm" and spec.tree is not None:
        found.append(
            Finding(
                "SPC404",
                f"a tree {spec.tree.breadth} wide becomes a chain of {spec.num_speculative_tokens} tokens in vLLM",
                help="measure it again: depth stays, breadth is lost",
            )
        )
    return found


def _ngram(spec: SpecDecodeConfig, engine: str) -> list[Finding]:
    low, high = getattr(spec.method, "prompt_lookup_min", 1), getattr(spec.method, "prompt_lookup_max", 1)
    search, shared = getattr(spec.method, "search", "earliest"), getattr(spec.method, "shared_pool", False)
    if engine == "trtllm" and low > 1:
        return [
            Finding(
                "SPC404",
                f"the lower bound prompt_lookup_min {low} cannot be said in TensorRT-LLM; "
                "it looks up suffixes from 1 token on",
                help="expect more drafts and lower acceptance",
            )
        ]
    if engine == "sglang" and search != "trie":
        return [
            Finding(
                "SPC404",
                f"the bounds {low} and {high} cannot be said in SGLang; its NGRAM keeps one trie over all requests",
                help="measure it again",
            )
        ]
    if engine == "vllm" and (search == "trie" or shared or search == "latest"):
        what = (
            "one trie over all requests"
            if search == "trie"
            else "one pool over all requests"
            if shared
            else "the youngest match"
        )
        return [
            Finding(
                "SPC404",
                f"{what} becomes vLLM's own lookup in each request",
                help="method suffix keeps a tree over requests",
            )
        ]
    return []


__all__ = ["document_of", "lost_in", "native_method", "own", "read_back", "reread"]
