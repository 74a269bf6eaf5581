# ruff: noqa: E501 (examples stand on one line)
"""The head was made for fewer positions than the target serves.

vLLM raises the head's position table to the target's context, but longer requests get no drafts, or poor ones.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "max_position_embeddings": 8192}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512, "max_position_embeddings": 2048}

Bad:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("target", "draft")
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Methods with a draft of its own, without an explicit limit."""
    methods = ("eagle", "eagle3", "draft_model")
    return not reading.off and reading.notes.get("method") in methods and not reading.given("max_model_len")


def check(reading: Reading) -> Iterator[Finding]:
    """Positions of the draft against the served context."""
    target, own = reading.around.target_facts, reading.notes["draft"].max_positions
    assert target is not None
    limit = reading.around.args.get("max_model_len") or target.max_positions
    if own and isinstance(limit, int) and own < limit and reading.notes["draft"].speculators is None:
        yield Finding(
            "SPC212",
            f"the draft was made for {own} positions, the target serves {limit}: longer requests get no drafts",
            reading.route("model"),
            help=f"use a draft made for {limit} positions, or serve with --max-model-len {own}",
        )
