"""The algorithm does not go with this kind of parallelism.

Bad:

    sglang: --speculative-algorithm NGRAM --tp-size 2 --attn-dp-size 2

Good:

    sglang: --speculative-algorithm NGRAM --dp-size 2
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.sglang_resolve import attention_dp

ENGINES = ("sglang",)


def check(reading: Reading) -> Iterator[Finding]:
    """Attention data parallelism, then pipelines."""
    args, name = reading.around.args, reading.notes.get("algorithm")
    size, tensor = attention_dp(reading), args.get("tp_size") or 1
    if size > 1 and tensor % size:
        yield Finding(
            "SPC332",
            f"the attention DP size {size} does not divide the tensor-parallel size {tensor}",
            help="give --tp-size a multiple of --attn-dp-size",
        )
    if name is None:
        return
    route = reading.route("speculative_algorithm")
    if size > 1 and (name in ("STANDALONE", "NGRAM") or (name == "DFLASH" and reading.notes["device"] != "npu")):
        yield Finding(
            "SPC332",
            f"{name} does not go with attention data parallelism",
            route,
            help="use --dp-size for whole replicas instead of --attn-dp-size",
        )
    if size > 1 and name == "DSPARK" and not args.get("enable_dp_lm_head"):
        yield Finding(
            "SPC332",
            "DSPARK with attention data parallelism needs --enable-dp-lm-head",
            route,
            help="add --enable-dp-lm-head",
        )
    if (args.get("pp_size") or 1) > 1:
        yield from _pipeline(reading, str(name))


def _pipeline(reading: Reading, name: str) -> Iterator[Finding]:
    route = reading.route("speculative_algorithm")
    prefill = reading.around.args.get("disaggregation_mode") == "prefill"
    enabled = str(reading.around.env.get("SGLANG_ENABLE_PP_SPEC", "0")).lower() in ("1", "true")
    if name == "DSPARK":
        if not prefill:
            yield Finding(
                "SPC332",
                "DSPARK runs with pipeline parallelism on a prefill node only",
                route,
                help="leave out --pp-size",
            )
    elif name != "EAGLE" or reading.effective.get("enable_multi_layer_eagle"):
        yield Finding(
            "SPC332",
            f"pipeline parallelism only goes with single-layer EAGLE, not with {name}",
            route,
            help="leave out --pp-size",
        )
    elif not prefill and not enabled:
        yield Finding(
            "SPC332",
            "pipeline parallelism with EAGLE runs on a prefill node only",
            route,
            help="leave out --pp-size, or set SGLANG_ENABLE_PP_SPEC=1",
        )
    elif enabled and (prefill or reading.effective.get("speculative_adaptive") or attention_dp(reading) > 1):
        yield Finding(
            "SPC332",
            "SGLANG_ENABLE_PP_SPEC does not go with disaggregation, adaptive steps or attention DP",
            route,
            help="leave one of them out",
        )
