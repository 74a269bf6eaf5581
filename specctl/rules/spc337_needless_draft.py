# ruff: noqa: E501 (examples stand on one line)
"""The target has its own prediction layers; a draft is given nevertheless.

target: {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_nextn_predict_layers": 1}

Bad:

    sglang: --model-path ./target --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2

Good:

    sglang: --model-path ./target --speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.sglang import EAGLE_FAMILY
from specctl.dialects.sglang_resolve import MTP_INSIDE

ENGINES = ("sglang",)
NEEDS = ("target",)
SEVERITY = "advice"


def applies(reading: Reading) -> bool:
    """The EAGLE family with a draft."""
    return reading.notes.get("algorithm") in EAGLE_FAMILY and reading.given("speculative_draft_model_path")


def check(reading: Reading) -> Iterator[Finding]:
    """By the target's class."""
    if reading.notes["architecture"] in MTP_INSIDE - {"MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"}:
        yield Finding(
            "SPC337",
            "this target has its own prediction layers; a draft is not needed",
            reading.route("speculative_draft_model_path"),
            help="leave it out, unless it is better than the target's own layers",
        )
