# ruff: noqa: E501 (examples stand on one line)
"""Rejection sampling or block verification does not go with this algorithm or tree.

Both need draft probabilities, which only EAGLE and EAGLE3 as a chain (topk 1) carry; block verification also runs
with DFLASH and DSPARK.

Bad:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --speculative-use-rejection-sampling

Good:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-use-rejection-sampling
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("sglang",)
REJECTION, BLOCK = "speculative_use_rejection_sampling", "speculative_use_block_verification"
SINGLE, ACC = "speculative_accept_threshold_single", "speculative_accept_threshold_acc"


def check(reading: Reading) -> Iterator[Finding]:
    """Block verification first: it turns rejection sampling on."""
    name = reading.notes.get("algorithm")
    if reading.get(BLOCK):
        if name not in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
            yield Finding(
                "SPC134",
                f"block verification does not run with {name or 'no algorithm'}",
                reading.route(BLOCK),
                help="leave the switch out",
            )
        elif reading.notes["device"] != "cuda":
            yield Finding(
                "SPC134",
                f"block verification needs a CUDA or ROCm device, not {reading.notes['device']}",
                reading.route(BLOCK),
                help="leave the switch out",
            )
    key = REJECTION if reading.get(REJECTION) else BLOCK
    if reading.effective.get(REJECTION):
        yield from _rejection(reading, str(name), key)


def _rejection(reading: Reading, name: str, key: str) -> Iterator[Finding]:
    topk = reading.effective.get("speculative_eagle_topk")
    if name == "STANDALONE":
        yield Finding(
            "SPC134", "rejection sampling does not run with STANDALONE", reading.route(key), help="leave the switch out"
        )
    elif name in ("EAGLE", "EAGLE3"):
        if topk is not None and topk != 1:
            yield Finding(
                "SPC134",
                f"rejection sampling needs topk 1, and topk is {topk}",
                reading.route(key),
                help="add --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
            )
        if (reading.get(SINGLE, 1.0), reading.get(ACC, 1.0)) != (1.0, 1.0):
            yield Finding(
                "SPC134",
                "rejection sampling ignores the accept thresholds, so SGLang refuses them",
                reading.route(key),
                help="leave the thresholds out",
            )
        if reading.around.args.get("enable_deterministic_inference"):
            yield Finding(
                "SPC134",
                "rejection sampling does not go with --enable-deterministic-inference",
                reading.route(key),
                help="leave one of them out",
            )
    elif name in ("NGRAM", "FROZEN_KV_MTP"):
        yield Finding(
            "SPC134",
            f"{name} drafts carry no probabilities: the first sampled batch fails",
            reading.route(key),
            help="leave the switch out",
            stage=FAILS,
        )
