"""More tokens are drafted than the Medusa checkpoint has heads.

draft: {"architectures": ["MedusaModel"], "model_type": "medusa", "vocab_size": 512, "num_heads": 3}
target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}

Bad:

    vllm: {"method": "medusa", "model": "./draft", "num_speculative_tokens": 5}

Good:

    vllm: {"method": "medusa", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.depth import trained_depth

ENGINES = ("vllm", "specctl")
NEEDS = ("draft",)
SEVERITY = "warning"
KEY = "num_speculative_tokens"


def applies(reading: Reading) -> bool:
    """Medusa only."""
    return not reading.off and reading.notes.get("method") == "medusa"


def check(reading: Reading) -> Iterator[Finding]:
    """Count against heads; the engine does not compare them."""
    found, count = trained_depth(reading.notes["draft"], "medusa"), reading.effective.get(KEY)
    heads = found[0] if found else 0
    if heads and count and count > heads:
        yield Finding(
            "SPC217",
            f"{count} tokens are drafted, but the checkpoint has {heads} heads: the rest is untrained",
            reading.route(KEY),
            help=f"write {heads}",
            fix=Fix(reading.route(KEY), heads),
        )
