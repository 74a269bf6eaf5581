"""This target only runs with some methods.

vLLM refuses everything but its own prediction layers and n-gram lookup for Qwen4-Exp, and MTP for DeepSeek-V4.1,
whose checkpoints hold DSpark layers instead.

target: {"architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp", "vocab_size": 512}

Bad:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("target",)


def applies(reading: Reading) -> bool:
    """Any method."""
    return not reading.off and reading.notes.get("method") is not None


def check(reading: Reading) -> Iterator[Finding]:
    """By the target's type."""
    target, method = reading.around.target_facts, reading.notes["method"]
    assert target is not None
    if target.architecture.startswith("Qwen4Exp") and method not in ("mtp", "ngram", "ngram_gpu"):
        yield Finding(
            "SPC309", f"Qwen4-Exp does not run with {method}", reading.route("method"), help='write "method": "mtp"'
        )
    if target.model_type == "deepseek_v41" and method == "mtp":
        yield Finding(
            "SPC309", "DeepSeek-V4.1 has no MTP layers", reading.route("method"), help='write "method": "dspark"'
        )
