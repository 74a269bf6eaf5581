"""A key has no effect with this method; the engine neither uses nor checks it.

Bad:

    vllm: {"method": "suffix", "num_speculative_tokens": 3, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "suffix", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.dialects.vllm import MODEL_FREE, NGRAM

ENGINES = ("vllm",)
SEVERITY = "warning"
DRAFT_KEYS = (
    "draft_tensor_parallel_size",
    "max_model_len",
    "quantization",
    "revision",
    "code_revision",
    "kv_cache_dtype",
    "attention_backend",
    "moe_backend",
    "draft_load_config",
)


def check(reading: Reading) -> Iterator[Finding]:
    """Keys of n-gram, suffix and drafts with methods that have no use for them."""
    method = reading.notes.get("method")
    if reading.off or method is None:
        return
    for key, value in reading.values.items():
        if value.value is not None and value.good and _idle(key, value.value, method):
            yield Finding(
                "SPC115",
                f"{key} has no effect with method {method}",
                value.route,
                at_key=True,
                help="leave it out",
                fix=Fix(value.route, remove=True),
            )


def _idle(key: str, value: object, method: str) -> bool:
    if key.startswith("prompt_lookup_"):
        return method not in NGRAM
    if key.startswith("suffix_decoding_"):
        return method != "suffix"
    if method in NGRAM | {"suffix"}:
        named = key == "model" and value not in ("ngram", "[ngram]", "suffix", "ngram_gpu")
        return key in DRAFT_KEYS or named or (key == "parallel_drafting" and bool(value))
    return method in MODEL_FREE and key in DRAFT_KEYS
