# ruff: noqa: E501 (examples stand on one line)
"""Rejection sampling does not go with this method or setting.

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: AUTO, use_rejection_sampling: true}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head, use_rejection_sampling: true}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("trtllm",)
KEY = "use_rejection_sampling"
NEVER = frozenset({"NGram", "SA", "AUTO", "User_Provided", "SaveState"})
STRICT = frozenset({"PARD", "DFlash", "DSpark", "Draft_Target"})


def check(reading: Reading) -> Iterator[Finding]:
    """Method, add-on, tree, surroundings."""
    if reading.get(KEY):
        why = _why(reading)
        if why:
            yield Finding(
                "SPC155", f"{KEY} does not go with {why}", reading.route(KEY), at_key=True, help="leave it out"
            )


def _why(reading: Reading) -> str | None:
    name, args = reading.notes["type"], reading.around.args
    if name in NEVER:
        return str(name)
    if reading.given("sa_config"):
        return "sa_config"
    if reading.get("use_dynamic_tree") and (reading.get("dynamic_tree_max_topK") or 0) > 32:
        return "a dynamic tree of topK above 32"
    if name in STRICT or (name == "MTP" and reading.get("use_mtp_vanilla")):
        if reading.get("use_relaxed_acceptance_for_thinking"):
            return "relaxed acceptance"
        if (args.get("context_parallel_size") or 1) > 1:
            return "context parallelism"
        if args.get("guided_decoding_backend"):
            return f"guided decoding and {name}"
    return None
