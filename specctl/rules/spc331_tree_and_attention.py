# ruff: noqa: E501 (examples stand on one line)
"""A tree of drafts (topk above 1) does not run on this attention backend or page size.

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --attention-backend trtllm_mha

Good:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --attention-backend flashinfer
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.sglang import EAGLE_FAMILY
from specctl.dialects.words import SGLANG_ATTENTION

ENGINES = ("sglang",)
# What EAGLE drafts of several steps run on beside the server's own choices (speculative/draft_utils.py).
DRAFT_ONLY = ("hybrid_linear_attn", "ascend", "dsv4", "nsa")
NOT_FOR_DRAFTS = ("torch_native", "flex_attention")
PAGED_TREES = ("flashinfer", "fa3", "triton")


def check(reading: Reading) -> Iterator[Finding]:
    """Names, then trees."""
    args, name = reading.around.args, reading.notes.get("algorithm")
    for key in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        if args.get(key) is not None and args[key] not in SGLANG_ATTENTION:
            yield Finding(
                "SPC331",
                f"--{key.replace('_', '-')} {args[key]!r} is no attention backend of SGLang {reading.release}",
                reading.route(key),
                help=f"one of {', '.join(SGLANG_ATTENTION[:10])}, ...",
            )
    effective = reading.effective
    backend, topk, page = (
        effective.get("attention_backend"),
        effective.get("speculative_eagle_topk"),
        effective.get("page_size") or 1,
    )
    used = {args.get("prefill_attention_backend") or backend, args.get("decode_attention_backend") or backend}
    if reading.given("speculative_algorithm") and backend == "flex_attention":
        yield Finding(
            "SPC331",
            "speculation does not run on flex_attention",
            reading.route("attention_backend"),
            help="write --attention-backend flashinfer",
        )
    yield from _draft(reading, str(name))
    if topk is None or topk <= 1:
        return
    route = reading.route("speculative_eagle_topk") or reading.route("speculative_algorithm")
    if name in EAGLE_FAMILY and "trtllm_mha" in used:
        yield Finding(
            "SPC331",
            f"trtllm_mha only runs chains, and topk is {topk}",
            route,
            help="add --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        )
    elif name in EAGLE_FAMILY and page > 1 and backend not in PAGED_TREES:
        yield Finding(
            "SPC331",
            f"a tree (topk {topk}) with page size {page} does not run on {backend}",
            route,
            help=f"use topk 1, --page-size 1, or one of {', '.join(PAGED_TREES)}",
        )
    elif name == "NGRAM" and page > 1 and backend != "flashinfer":
        yield Finding(
            "SPC331",
            f"a lookup tree of breadth {topk} with page size {page} only runs on flashinfer, not on {backend}",
            route,
            help="write --speculative-ngram-max-bfs-breadth 1, --page-size 1 or --attention-backend flashinfer",
        )


def _draft(reading: Reading, name: str) -> Iterator[Finding]:
    """The draft's own backend: nobody checks its name before the draft worker starts."""
    key = "speculative_draft_attention_backend"
    backend = reading.get(key)
    known = (*SGLANG_ATTENTION, *DRAFT_ONLY)
    if backend is None or name not in EAGLE_FAMILY or (backend in known and backend not in NOT_FOR_DRAFTS):
        return
    yield Finding(
        "SPC331",
        f"--speculative-draft-attention-backend {backend!r} runs no draft of several steps; the draft worker stops",
        reading.route(key),
        help="write flashinfer, fa3 or triton",
        stage=FAILS,
    )
