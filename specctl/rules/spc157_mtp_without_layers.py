"""MTP of 1.2.1 counts its drafts in num_nextn_predict_layers; without it the budget stays unset and the start fails.

Bad:

    trtllm: speculative_config: {decoding_type: MTP, max_draft_len: 3}

Good:

    trtllm: speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """Only the older line."""
    if reading.notes.get("type") != "MTP" or is_new(reading.release) or "num_nextn_predict_layers" in reading.values:
        return
    length = reading.get("max_draft_len")
    route = reading.route("max_draft_len") or reading.route("decoding_type")
    fix = (
        Fix(reading.route("max_draft_len"), key="num_nextn_predict_layers", replacement=length)
        if length and length > 0
        else None
    )
    yield Finding(
        "SPC157",
        "without num_nextn_predict_layers the draft budget stays unset, and the start fails",
        route,
        help=f"write num_nextn_predict_layers: {length if length and length > 0 else 1}",
        stage=FAILS,
        fix=fix,
    )
