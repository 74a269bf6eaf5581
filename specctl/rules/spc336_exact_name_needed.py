# ruff: noqa: E501 (examples stand on one line)
"""This target compares the algorithm as it was typed, before aliases and case are resolved.

DeepSeek-V4 takes `EAGLE` (with an explicit topk of 1) or `DSPARK` only; MiMo-V2, Step3.5 and their kin switch their
layers on for `EAGLE` but not for `NEXTN` or `eagle`.

target: {"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "num_nextn_predict_layers": 1}

Bad:

    sglang: --model-path ./target --speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2

Good:

    sglang: --model-path ./target --speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.dialects.sglang_resolve import MULTI_LAYER

ENGINES = ("sglang",)
NEEDS = ("target",)


def applies(reading: Reading) -> bool:
    """Any algorithm that was typed."""
    return reading.given("speculative_algorithm")


def check(reading: Reading) -> Iterator[Finding]:
    """By the target's class."""
    typed, route = reading.notes["typed"], reading.route("speculative_algorithm")
    architecture = reading.notes["architecture"]
    if architecture == "DeepseekV4ForCausalLM":
        if typed not in ("EAGLE", "DSPARK"):
            yield Finding(
                "SPC336",
                f"DeepSeek-V4 takes EAGLE or DSPARK, typed exactly so, not {typed}",
                route,
                help="write --speculative-algorithm EAGLE",
                fix=Fix(route, "EAGLE"),
            )
        elif typed == "EAGLE" and reading.get("speculative_eagle_topk") != 1:
            yield Finding(
                "SPC336",
                "DeepSeek-V4 with EAGLE needs an explicit topk of 1",
                route,
                help="add --speculative-eagle-topk 1",
            )
    elif architecture in MULTI_LAYER and typed != "EAGLE" and reading.notes["algorithm"] == "EAGLE":
        yield Finding(
            "SPC336",
            f"typed as {typed}, only one of the target's prediction layers is used; typed as EAGLE, all are",
            route,
            help="write --speculative-algorithm EAGLE",
            fix=Fix(route, "EAGLE"),
            severity="warning",
        )
