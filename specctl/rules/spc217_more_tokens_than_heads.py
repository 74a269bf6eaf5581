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

ENGINES = ("vllm", "specctl")
NEEDS = ("draft",)
SEVERITY = "warning"
KEY = "num_speculative_tokens"


def applies(reading: Reading) -> bool:
    """Medusa only."""
    return not reading.off and reading.notes.get("method") == "medusa"


def check(reading: Reading) -> Iterator[Finding]:
    """Count against heads; the engine does not compare them."""
    heads, count = reading.notes["draft"].number("num_heads", "medusa_num_heads"), reading.effective.get(KEY)
    if heads and count and count > heads:
        yield Finding(
            "SPC217",
            f"{count} tokens are drafted, but the checkpoint has {heads} heads: the rest is untrained",
            reading.route(KEY),
            help=f"write {heads}",
            fix=Fix(reading.route(KEY), heads),
        )
