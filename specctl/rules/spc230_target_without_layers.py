# ruff: noqa: E501 (examples stand on one line)
"""TensorRT-LLM is asked for MTP on a target that has no prediction layers.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}

Bad:

    trtllm: {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1}}

Good:

    trtllm: {"speculative_config": {"decoding_type": "NGram", "max_draft_len": 3, "max_matching_ngram_size": 3, "is_public_pool": false}}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo.families import mtp_family

ENGINES = ("trtllm",)
NEEDS = ("target",)


def applies(reading: Reading) -> bool:
    """MTP out of the target's own checkpoint; a model beside it brings its own layers."""
    return not reading.off and reading.notes.get("method") == "mtp" and not reading.given("speculative_model")


def check(reading: Reading) -> Iterator[Finding]:
    """The target's family."""
    target = reading.around.target_facts
    assert target is not None
    if mtp_family(target) is None:
        yield Finding(
            "SPC230",
            f"{target.name} is a {target.model_type or 'model'} without prediction layers; MTP does not run",
            reading.route("decoding_type"),
            help="use NGram, or a draft or EAGLE-3 head made for this target",
            stage=FAILS,
        )
