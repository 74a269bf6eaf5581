# ruff: noqa: E501 (examples stand on one line)
"""The draft's weights and cache leave room for less than half of the conversations.

A draft speeds up each conversation, but one that waits for memory gains nothing. A draft with many layers keeps a KV
cache that can be as large as the target's. The sums are those of `specctl plan`; name the GPU with `--platform`.

target: {"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16", "tie_word_embeddings": true}
platform: {"name": "l4"}

Bad:

    vllm: {"method": "draft_model", "model": "Qwen/Qwen3-1.7B", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "eagle3", "model": "AngelSlim/Qwen3-4B_eagle3", "num_speculative_tokens": 3}
"""

from __future__ import annotations

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.rules.estimate import estimate, table

NEEDS = ("platform",)
SEVERITY = "advice"


def applies(reading: Reading) -> bool:
    """Where sizes and GPU are known."""
    return estimate(reading) is not None


def check(reading: Reading) -> Iterator[Finding]:
    """Conversations with and without the draft."""
    plan = estimate(reading)
    if plan is None or plan.problem is not None:
        return
    memory = plan.memory
    if memory.conversations_with_draft * 2 < memory.conversations:
        key = "model" if reading.engine == "vllm" else "speculative_model"
        yield Finding(
            "SPC520",
            f"with the draft {memory.conversations_with_draft} conversations of {plan.request.context} tokens fit "
            f"instead of {memory.conversations}",
            reading.route("speculative_draft_model_path" if reading.engine == "sglang" else key),
            help="use a head of one layer, a smaller draft, or an 8-bit KV cache",
            notes=table(plan),
        )
