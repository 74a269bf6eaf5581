"""The model has no prediction layers that MTP could use.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}

Bad:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """MTP, or a draft that vLLM could not place."""
    return not reading.off and (reading.notes.get("method") == "mtp" or "unsupported_method" in reading.notes)


def check(reading: Reading) -> Iterator[Finding]:
    """No family, or a family whose config declares none."""
    draft = reading.notes["draft"]
    method = reading.notes.get("unsupported_method")
    if method:
        yield Finding(
            "SPC204",
            f"{draft.name} is a {draft.model_type or 'model'} without prediction layers; method {method} does not run",
            reading.route("method"),
            help="use ngram, or a draft or EAGLE-3 head made for this target",
        )
    elif reading.notes.get("n_predict") == 0:
        yield Finding(
            "SPC204",
            f"the config of {draft.name} declares 0 prediction layers; the engine divides by zero",
            reading.route("method"),
            help="use a checkpoint that still has its prediction layers",
        )
