# ruff: noqa: E501 (examples stand on one line)
"""The dynamic tree is incomplete, or its budget lies outside what it can hold.

The budget `max_total_draft_tokens` must lie between `max_draft_len` and topK times `max_draft_len`.

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head, use_dynamic_tree: true}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head, use_dynamic_tree: true, dynamic_tree_max_topK: 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
SWITCH, TOPK, TOTAL, LENGTH = "use_dynamic_tree", "dynamic_tree_max_topK", "max_total_draft_tokens", "max_draft_len"


def check(reading: Reading) -> Iterator[Finding]:
    """Branches, length, budget, and the static tree beside it."""
    if not reading.get(SWITCH):
        return
    topk, total, length = reading.get(TOPK), reading.get(TOTAL), reading.effective.get(LENGTH)
    if topk is None or topk < 1:
        yield Finding(
            "SPC152",
            f"a dynamic tree needs {TOPK} of at least 1",
            reading.route(SWITCH),
            at_key=True,
            help=f"add {TOPK}: 4",
        )
    elif length is None and reading.notes["type"] == "MTP":
        yield Finding(
            "SPC152", f"a dynamic tree needs {LENGTH}", reading.route(SWITCH), at_key=True, help=f"add {LENGTH}: 3"
        )
    elif is_new(reading.release) and total is not None and length and not length <= total <= topk * length:
        yield Finding(
            "SPC152",
            f"{TOTAL} is {total}; between {LENGTH} {length} and {TOPK} x {LENGTH} = {topk * length} was wanted",
            reading.route(TOTAL),
            help=f"write {TOTAL}: {topk * length}",
        )
    if reading.given("eagle_choices"):
        yield Finding(
            "SPC152",
            "eagle_choices and use_dynamic_tree exclude each other",
            reading.route("eagle_choices"),
            at_key=True,
            help="leave out eagle_choices",
        )
