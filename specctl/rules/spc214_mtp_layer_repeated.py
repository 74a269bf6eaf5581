# ruff: noqa: E501 (examples stand on one line)
"""One prediction layer is run several times for one block, so later places are guessed worse.

Not said of the assistants of Gemma 4, which are made for that.

target: {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "vocab_size": 512, "num_nextn_predict_layers": 1}

Bad:

    vllm: {"method": "mtp", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.describe import is_assistant

ENGINES = ("vllm",)
NEEDS = ("draft",)
SEVERITY = "advice"


def applies(reading: Reading) -> bool:
    """MTP with more than one token."""
    draft = reading.notes.get("draft")
    return (
        not reading.off
        and not (draft and is_assistant(draft))
        and reading.notes.get("method") == "mtp"
        and (reading.effective.get("num_speculative_tokens") or 0) > 1
    )


def check(reading: Reading) -> Iterator[Finding]:
    """Count against layers."""
    layers, count = reading.notes.get("n_predict"), reading.effective["num_speculative_tokens"]
    if layers and count > layers:
        yield Finding(
            "SPC214",
            f"{count} tokens are drafted with {layers} prediction layer{'s' if layers > 1 else ''}, run over and over",
            reading.route("num_speculative_tokens"),
            help=f"measure against {layers}; acceptance falls with each repeat",
        )
