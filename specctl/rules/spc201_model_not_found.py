"""A model is not where the setting says, or its files are damaged.

Names that can only be paths, and the target that was given, must exist. Hub ids that are not in the local cache are
not looked up; the rules that need their config are reported as skipped. A target that a configuration file names and
that is not here is a warning, and so is a draft by its full path: the file may be for another machine. Weight files
are held against their own headers: a file that is cut off, a missing shard or a pointer of Git LFS is named.

Bad:

    vllm: {"method": "draft_model", "model": "./nowhere/draft", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "draft_model", "model": "org/draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.diagnostics import WARNING, Route
from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo import ModelFacts, ModelProblem
from specctl.modelinfo.damage import damage_of

AGAIN = "fetch that file again"
KEYS = {"vllm": "model", "sglang": "speculative_draft_model_path", "trtllm": "speculative_model", "specctl": "model"}
FREE = frozenset({"ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"})


def check(reading: Reading) -> Iterator[Finding]:
    """The target that was named, then the draft."""
    target = reading.around.model(reading.around.target)
    if isinstance(target, ModelProblem) and target.kind != "unknown":
        cure = AGAIN if target.kind == "damaged" else "give the folder that holds its config.json"
        elsewhere = target.kind == "missing" and reading.around.in_file
        text = f"the target {'is not on this machine' if elsewhere else 'cannot be used'}: {target.message}"
        yield Finding("SPC201", text, help=cure, severity=WARNING if elsewhere else None)
    yield from _damaged("target", target, ())
    served = reading.notes.get("served")
    if served is not None:
        yield from _verifier(reading, served.verifier)
        return
    key = KEYS.get(reading.engine, "model")
    name = reading.get(key)
    if (
        reading.off
        or not isinstance(name, str)
        or (reading.engine in ("vllm", "specctl") and reading.notes.get("method") in FREE)
    ):
        return
    found = reading.around.model(name)
    if isinstance(found, ModelProblem) and found.kind == "missing" and _for_another_machine(reading, name):
        yield Finding(
            "SPC201",
            f"the draft is not on this machine, so what hangs on it was not checked: {found.message}",
            reading.route(key),
            help="check the file where the draft lies, too",
            severity=WARNING,
        )
        return
    if isinstance(found, ModelProblem) and (found.kind != "unknown" or name.lower() in FREE):
        cure = AGAIN if found.kind == "damaged" else "check the path; it starts from the current folder"
        help_text = f'write "method": "{name.lower()}"' if name.lower() in FREE else cure
        yield Finding("SPC201", f"the draft cannot be used: {found.message}", reading.route(key), help=help_text)
    if found is not target:
        yield from _damaged("draft", found, reading.route(key))


def _for_another_machine(reading: Reading, name: str) -> bool:
    """Whether a file names a place by its full path; a command line is typed where it runs."""
    return reading.document.form == "yaml" and name.startswith(("/", "~"))


def _damaged(what: str, found: object, route: Route) -> Iterator[Finding]:
    fault = damage_of(found.path) if isinstance(found, ModelFacts) else None
    if fault:
        yield Finding("SPC201", f"the {what} cannot be used: {fault}", route, help=AGAIN)


def _verifier(reading: Reading, name: str | None) -> Iterator[Finding]:
    found = reading.around.model(name)
    if isinstance(found, ModelProblem) and found.kind == "missing":
        yield Finding(
            "SPC201",
            f"the target that the served checkpoint names cannot be used: {found.message}",
            help="serve the target itself",
        )
