"""Another option of the server does not go with this algorithm.

Bad:

    sglang: --speculative-algorithm STANDALONE --speculative-draft-model-path org/draft --enable-watermark

Good:

    sglang: --speculative-algorithm NGRAM --enable-watermark
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.sglang_resolve import attention_dp

ENGINES = ("sglang",)
NEVER = ("enable_lmcache", "enable_layernorm_sp", "enable_pd_role_switch")
CHAINS = ("enable_hisparse", "enable_linear_replayssm_spec", "enable_unified_memory")


def check(reading: Reading) -> Iterator[Finding]:
    """LoRA, watermark, overlap of batches, device."""
    args, name = reading.around.args, reading.notes.get("algorithm")
    if name is None:
        if str(reading.get("speculative_algorithm", "")).upper() == "NONE":
            yield from _never(reading, "NONE")
        return
    route = reading.route("speculative_algorithm")
    if (args.get("enable_lora") or args.get("lora_paths")) and (
        name in ("STANDALONE", "FROZEN_KV_MTP")
        or reading.effective.get("speculative_adaptive")
        or (name == "DSPARK" and reading.around.env.get("SGLANG_RAGGED_VERIFY_MODE", "static") != "static")
    ):
        yield Finding(
            "SPC333",
            f"LoRA does not go with {name}" + (" and adaptive steps" if name.startswith("EAGLE") else ""),
            route,
            help="leave out --enable-lora",
        )
    if args.get("enable_watermark") and name not in ("NGRAM", "EAGLE", "EAGLE3"):
        yield Finding("SPC333", f"watermarking does not go with {name}", route, help="leave out --enable-watermark")
    yield from _never(reading, str(name))
    yield from _chains(reading, str(name))
    alone = (args.get("moe_a2a_backend") or "none") == "none"
    if args.get("enable_two_batch_overlap") and alone and attention_dp(reading) <= 1:
        yield Finding(
            "SPC333",
            "two-batch overlap needs attention data parallelism or an expert all-to-all backend",
            reading.route("enable_two_batch_overlap"),
            help="leave out --enable-two-batch-overlap",
        )
    device = reading.notes["device"]
    allowed = {"NGRAM": ("cuda", "cpu", "xpu"), "DFLASH": ("cuda", "npu", "xpu"), "DSPARK": ("cuda", "npu")}.get(
        str(name)
    )
    if allowed and device not in allowed:
        yield Finding(
            "SPC333", f"{name} does not run on the device {device}", route, help=f"it runs on {', '.join(allowed)}"
        )


def _never(reading: Reading, name: str) -> Iterator[Finding]:
    """What goes with no algorithm at all; the first two are refused beside the word NONE, too."""
    args = reading.around.args
    found = ["weight_cache_mode"] if args.get("weight_cache_mode") not in (None, "off") else []
    found += ["enable_kv_cache_sharding"] if args.get("enable_kv_cache_sharding") else []
    if name != "NONE":
        found += [key for key in NEVER if args.get(key)]
        found += [key for key in ("dwdp_size",) if str(args.get(key) or 1) != "1"]
        found += ["dcp_size"] if reading.notes["device"] == "xpu" and (args.get("dcp_size") or 1) > 1 else []
        if name != "DSPARK" and args.get("disaggregation_mode") == "decode":
            found += [key for key in ("disaggregation_decode_enable_radix_cache",) if args.get(key)]
    for key in found:
        flag = f"--{key.replace('_', '-')}"
        text, help_text = f"{flag} does not go with speculation", f"leave out {flag}, or the algorithm"
        yield Finding("SPC333", text, reading.route(key), help=help_text)


def _chains(reading: Reading, name: str) -> Iterator[Finding]:
    """What goes with a chain of drafts only, and the interval of a Mamba model's extra buffer."""
    args, topk = reading.around.args, reading.get("speculative_eagle_topk")
    for key in CHAINS:
        if args.get(key) and topk not in (None, 1) and name != "NONE":
            flag = f"--{key.replace('_', '-')}"
            text = f"{flag} needs a chain of drafts, and topk is {topk}"
            yield Finding(
                "SPC333", text, reading.route("speculative_eagle_topk"), help=f"use topk 1, or leave out {flag}"
            )
    interval, width = args.get("mamba_track_interval", 256), reading.effective.get("speculative_num_draft_tokens")
    buffered = str(args.get("mamba_radix_cache_strategy", "")).startswith("extra_buffer")
    if buffered and isinstance(width, int) and isinstance(interval, int) and width > interval:
        yield Finding(
            "SPC333",
            f"--mamba-track-interval {interval} is below the {width} draft tokens of a step",
            reading.route("speculative_num_draft_tokens"),
            help=f"write --mamba-track-interval {width} or more",
        )
