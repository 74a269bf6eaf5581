"""Another option of the engine does not go with speculation, or with this method.

args: {"kv_sharing_fast_prefill": true}

Bad:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.vllm_runner import first_runner

ENGINES = ("vllm",)
EAGLE_LIKE = frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark"})
WATERMARKED = frozenset({"dspark", "eagle", "eagle3", "mtp"})
DETAIL = ("none", "summary", "detailed")


def check(reading: Reading) -> Iterator[Finding]:
    """The options one by one; each says what to leave out."""
    args, method = reading.around.args, reading.notes.get("method")
    detail = args.get("per_request_spec_decode_metrics")
    if detail is not None and detail not in DETAIL:
        yield Finding(
            "SPC304",
            f"per_request_spec_decode_metrics is {detail!r}; it takes {', '.join(DETAIL)}",
            reading.route("per_request_spec_decode_metrics"),
            help="write summary",
        )
    if reading.off and "served" not in reading.notes:
        if detail in DETAIL[1:]:
            yield Finding(
                "SPC304",
                "per-request metrics of speculation are asked for, but speculation is off",
                reading.route("per_request_spec_decode_metrics"),
                help="leave out --per-request-spec-decode-metrics, or give a setting",
            )
        return
    if args.get("kv_sharing_fast_prefill") and method in EAGLE_LIKE:
        yield Finding(
            "SPC304",
            f"kv_sharing_fast_prefill does not go with {method}",
            reading.route("kv_sharing_fast_prefill") or reading.route("method"),
            help="leave out --kv-sharing-fast-prefill",
        )
    if args.get("logits_processors") and first_runner(reading):
        yield Finding(
            "SPC304",
            f"custom logits processors do not go with speculation on the runner that {method} uses; the worker stops",
            reading.route("logits_processors") or reading.route("method"),
            help="leave out --logits-processors",
            stage=FAILS,
        )
    if args.get("return_sampling_mask"):
        yield Finding(
            "SPC304",
            "return_sampling_mask does not go with speculation",
            reading.route("return_sampling_mask"),
            help="leave out --return-sampling-mask",
        )
    if args.get("watermark_config") or args.get("watermark"):
        yield from _watermark(reading, str(method))


def _watermark(reading: Reading, method: str) -> Iterator[Finding]:
    probabilistic = reading.get("draft_sample_method", "greedy") == "probabilistic"
    standard = reading.get("rejection_sample_method", "standard") == "standard"
    parallel = reading.effective.get("parallel_drafting") and method != "dspark"
    if not probabilistic or not standard or method not in WATERMARKED or parallel:
        yield Finding(
            "SPC304",
            "watermarking with speculation needs an EAGLE, MTP or DSpark draft, probabilistic drafting and standard "
            "verification",
            reading.route("method"),
            help='add "draft_sample_method": "probabilistic", or turn the watermark off',
        )
