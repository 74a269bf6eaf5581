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


def check(reading: Reading) -> Iterator[Finding]:
    """LoRA, watermark, overlap of batches, device."""
    args, name = reading.around.args, reading.notes.get("algorithm")
    if name is None:
        return
    route = reading.route("speculative_algorithm")
    if (args.get("enable_lora") or args.get("lora_paths")) and (
        name in ("STANDALONE", "FROZEN_KV_MTP") or reading.effective.get("speculative_adaptive")
    ):
        yield Finding(
            "SPC333",
            f"LoRA does not go with {name}" + (" and adaptive steps" if name.startswith("EAGLE") else ""),
            route,
            help="leave out --enable-lora",
        )
    if args.get("enable_watermark") and name not in ("NGRAM", "EAGLE", "EAGLE3"):
        yield Finding("SPC333", f"watermarking does not go with {name}", route, help="leave out --enable-watermark")
    alone = (args.get("moe_a2a_backend") or "none") == "none"
    if args.get("enable_two_batch_overlap") and alone and attention_dp(reading) <= 1:
        yield Finding(
            "SPC333",
            "two-batch overlap needs attention data parallelism or an expert all-to-all backend",
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
