# ruff: noqa: E501 (examples stand on one line)
"""The count is above the draft's own number of predictions and no multiple of it.

vLLM lets a prediction layer run several times, but only whole rounds of all layers.

target: {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "vocab_size": 512, "num_nextn_predict_layers": 2}

Bad:

    vllm: {"method": "mtp", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 2}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("draft",)
KEY = "num_speculative_tokens"


def applies(reading: Reading) -> bool:
    """Methods with a draft."""
    return not reading.off and reading.notes.get("method") in (
        "eagle",
        "eagle3",
        "mtp",
        "draft_model",
        "medusa",
        "dflash",
    )


def check(reading: Reading) -> Iterator[Finding]:
    """The engine's rule: below is fine, above must be a multiple."""
    predict, count = reading.notes.get("n_predict"), reading.get(KEY)
    if predict and count and count > predict and count % predict:
        fits = count - count % predict
        yield Finding(
            "SPC205",
            f"{count} drafted tokens are above the draft's own {predict} and no multiple of it",
            reading.route(KEY),
            help=f"write {fits} (or {predict})",
            fix=Fix(reading.route(KEY), fits),
        )
