# ruff: noqa: E501 (examples stand on one line)
"""No draft is named, and the target has no prediction layers: SGLang loads the target again as its own draft, and the
worker fails.

target: {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936}

Bad:

    sglang: --model-path ./target --speculative-algorithm EAGLE3

Good:

    sglang: --model-path ./target --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.sglang import EAGLE_FAMILY
from specctl.dialects.sglang_resolve import MTP_INSIDE, MULTI_LAYER
from specctl.modelinfo.families import mtp_family

ENGINES = ("sglang",)
NEEDS = ("target",)
DRAFT = "speculative_draft_model_path"


def applies(reading: Reading) -> bool:
    """The EAGLE family without a draft."""
    return reading.notes.get("algorithm") in EAGLE_FAMILY and not reading.given(DRAFT)


def check(reading: Reading) -> Iterator[Finding]:
    """A target with prediction layers may go without a draft under EAGLE only."""
    target, name = reading.around.target_facts, reading.notes["algorithm"]
    assert target is not None
    inside = mtp_family(target) is not None or target.architecture in MTP_INSIDE | MULTI_LAYER
    if name == "EAGLE" and inside:
        return
    if inside:
        yield Finding(
            "SPC221",
            f"{name} without a draft loads the target itself as one, which is no {name} head",
            reading.route("speculative_algorithm"),
            help="write --speculative-algorithm EAGLE to use the target's own layers",
            stage=FAILS,
        )
        return
    yield Finding(
        "SPC221",
        f"{name} has no draft: the target would be loaded again as its own",
        reading.route("speculative_algorithm"),
        help="add --speculative-draft-model-path FOLDER",
        stage=FAILS,
    )
