"""The draft's attention heads cannot be split over the tensor-parallel size.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "num_attention_heads": 8}
draft: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "num_attention_heads": 3}
args: {"tensor_parallel_size": 2}

Bad:

    vllm: {"model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """Only with tensor parallelism of the draft."""
    return not reading.off and (reading.effective.get("draft_tensor_parallel_size") or 1) > 1


def check(reading: Reading) -> Iterator[Finding]:
    """Heads of the draft over its tensor-parallel size."""
    size, heads = reading.effective["draft_tensor_parallel_size"], reading.notes["draft"].num_heads
    if heads and heads % size:
        yield Finding(
            "SPC206",
            f"the draft's {heads} attention heads cannot be split over {size} GPUs",
            reading.route("model"),
            help='use another draft, or "draft_tensor_parallel_size": 1 with an EAGLE head',
        )
