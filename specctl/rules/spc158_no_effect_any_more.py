# ruff: noqa: E501 (examples stand on one line)
"""A key is taken, but does nothing with this release, type or backend.

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head, allow_advanced_sampling: true}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head}

Bad:

    trtllm@1.2.1: speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: org/head, posterior_threshold: 0.1, allow_advanced_sampling: true}

Good:

    trtllm@1.2.1: speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: org/head, allow_advanced_sampling: true}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
SEVERITY = "warning"
WITHOUT_DRAFT = frozenset({"NGram", "SA", "Lookahead"})
# Of Eagle in 1.2.1: what only the engine backend reads, and the value that changes nothing.
ENGINE_ONLY = {
    "greedy_sampling": True,
    "posterior_threshold": None,
    "use_dynamic_tree": False,
    "dynamic_tree_max_topK": None,
    "max_non_leaves_per_layer": None,
}
GATES = (
    ("acceptance_window", "acceptance_length_threshold"),
    ("acceptance_rate_window_size", "acceptance_rate_threshold"),
)


def check(reading: Reading) -> Iterator[Finding]:
    """Each key that was given, with the reason why nobody reads it."""
    for key, value in reading.values.items():
        if value.value is None or not value.good:
            continue
        why = _why(reading, key, value.value)
        if why:
            # The width of a tree cannot go before the tree.
            bound = key == "dynamic_tree_max_topK" and reading.get("use_dynamic_tree")
            fix = None if bound else Fix(value.route, remove=True)
            yield Finding("SPC158", f"{key} {why}", value.route, at_key=True, help="leave it out", fix=fix)
    yield from _gates(reading)


def _why(reading: Reading, key: str, value: object) -> str | None:
    name, new = reading.notes.get("type"), is_new(reading.release)
    if name == "AUTO" and key != "decoding_type":
        return "is ignored: AUTO takes its own n-gram settings"
    if key == "allow_advanced_sampling" and new:
        return "does nothing any more: sampling is told by each request"
    if key == "speculative_model" and name in WITHOUT_DRAFT:
        return f"has no effect: {name} drafts without a model"
    if name == "Eagle" and not new and _backend(reading) == "pytorch" and key in ENGINE_ONLY:
        return None if value == ENGINE_ONLY[key] else "has no effect on the backend pytorch"
    if key == "draft_len_schedule" and _without_schedule(reading, str(name), new):
        return f"is not followed by {name} in this release: it always drafts max_draft_len tokens"
    return None


def _backend(reading: Reading) -> str:
    return str(reading.around.args.get("backend") or "pytorch")


def _without_schedule(reading: Reading, name: str, new: bool) -> bool:
    if new:
        return name in ("DSpark", "SaveState")
    return name == "MTP" or (name == "Eagle" and reading.get("eagle3_one_model", True) is True)


def _gates(reading: Reading) -> Iterator[Finding]:
    """The switch that ends speculation for good needs both its window and its threshold."""
    for window, threshold in GATES:
        given = [key for key in (window, threshold) if reading.given(key)]
        if len(given) == 1 and reading.get(given[0]) and reading.notes.get("type") != "AUTO":
            other = threshold if given[0] == window else window
            text = f"{given[0]} alone has no effect: speculation is switched off by {window} and {threshold} together"
            yield Finding("SPC158", text, reading.route(given[0]), at_key=True, help=f"add {other}, or leave it out")
