# ruff: noqa: E501 (examples stand on one line)
"""SGLang's static share of the memory is too small for weights, draft and cache, or leaves too little beside them.

`--mem-fraction-static` covers weights and KV cache, the draft's too; graphs and activations live in the rest. A share
has to be large enough for the first and small enough for the second; on a full GPU none is both. Speculation does not
change the automatic share, so nothing is set aside for the draft. Name the GPU with `--platform`.

target: {"model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16"}
platform: {"name": "h100"}

Bad:

    sglang: --speculative-algorithm STANDALONE --speculative-draft-model-path Qwen/Qwen3-0.6B --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --mem-fraction-static 0.5
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

from specctl.dialects.reading import Finding, Reading
from specctl.rules.estimate import estimate, share, table

ENGINES = ("sglang",)
NEEDS = ("platform",)
SEVERITY = "warning"
KEY = "mem_fraction_static"
SHRINK = (
    "take fewer draft tokens, a smaller --cuda-graph-max-bs-decode, --max-running-requests or --context-length, an "
    "8-bit cache, a smaller draft, or more GPUs (--tp-size)"
)


def applies(reading: Reading) -> bool:
    """Where sizes and GPU are known."""
    return estimate(reading) is not None


def check(reading: Reading) -> Iterator[Finding]:
    """The share against the window that works."""
    plan, wanted = estimate(reading), share(reading, KEY)
    if plan is None:
        return
    low, high = plan.memory.static_window()
    least, most = ceil(low * 100) / 100, floor(high * 100) / 100
    notes, route = table(plan), reading.route("speculative_draft_model_path")
    if low > high:
        yield Finding(
            "SPC241",
            f"no --mem-fraction-static works: weights, draft and one conversation need {low:.2f} of the memory, and above "
            f"{high:.2f} too little is left for graphs and activations",
            route,
            help=SHRINK,
            notes=notes,
        )
    elif wanted is not None and wanted < low:
        yield Finding(
            "SPC241",
            f"--mem-fraction-static {wanted:g} is too small for weights, draft and one conversation: they need {least:.2f}",
            route,
            help=f"give {least:.2f} to {most:.2f}",
            notes=notes,
        )
    elif wanted is not None and wanted > high:
        yield Finding(
            "SPC241",
            f"--mem-fraction-static {wanted:g} leaves too little for graphs and activations: {most:.2f} is the most",
            route,
            help=f"give {least:.2f} to {most:.2f}",
            notes=notes,
        )
