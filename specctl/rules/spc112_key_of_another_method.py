"""A key belongs to another method, and the engine refuses it here.

Bad:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3, "dspark_draft_topk": 8}

Good:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.vllm import MODEL_FREE

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """Three keys of vLLM that name their method."""
    method = reading.notes.get("method")
    if reading.given("dspark_draft_topk") and method != "dspark" and method not in MODEL_FREE:
        yield _finding(reading, "dspark_draft_topk", "dspark")
    draft, topk = reading.notes.get("draft"), reading.get("dspark_draft_topk")
    if topk is not None and method == "dspark" and draft is not None:
        size = draft.number("draft_vocab_size") or draft.vocab_size
        if size is not None and topk > size:
            yield Finding(
                "SPC112",
                f"dspark_draft_topk is {topk}; the draft has {size} tokens",
                reading.route("dspark_draft_topk"),
                help=f"write {size} or less",
            )
    if reading.given("index_share_for_mtp_iteration") and method != "mtp":
        yield _finding(reading, "index_share_for_mtp_iteration", "mtp")
    if reading.get("enable_adaptive_verification") and reading.get("use_local_argmax_reduction") and method != "dspark":
        yield Finding(
            "SPC112",
            "enable_adaptive_verification needs the draft's logits, which use_local_argmax_reduction never makes",
            reading.route("use_local_argmax_reduction"),
            at_key=True,
            help="keep one of the two",
        )


def _finding(reading: Reading, key: str, owner: str) -> Finding:
    return Finding(
        "SPC112", f"{key} is for method {owner} only", reading.route(key), at_key=True, help="leave the key out"
    )
