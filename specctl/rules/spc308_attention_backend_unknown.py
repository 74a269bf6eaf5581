# ruff: noqa: SIM905 (a list of words reads better as one text)
"""The attention backend is not one of the engine's.

Bad:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "attention_backend": "turbo"}

Good:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "attention_backend": "FLASH_ATTN"}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading, nearest

ENGINES = ("vllm",)
KEY = "attention_backend"
NAMES = frozenset(
    (
        "FLASH_ATTN FLASH_ATTN_DIFFKV FLASH_ATTN_MLA FLASHINFER FLASHINFER_MLA FLASHINFER_MLA_SPARSE "
        "TRITON_ATTN TRITON_MLA TREE_ATTN FLEX_ATTENTION ROCM_ATTN ROCM_AITER_FA ROCM_AITER_MLA "
        "ROCM_AITER_MLA_SPARSE ROCM_AITER_UNIFIED_ATTN ROCM_AITER_TRITON_MLA TORCH_SDPA CPU_ATTN "
        "XPU_MLA_SPARSE CUTLASS_MLA FLASHMLA FLASHMLA_SPARSE NO_ATTENTION CUSTOM HPC_ATTN"
    ).split()
)


def check(reading: Reading) -> Iterator[Finding]:
    """Names are read without regard to case; `auto` means unset."""
    name = reading.get(KEY)
    if isinstance(name, str) and name.lower() != "auto" and name.upper() not in NAMES:
        near = nearest(name, NAMES)
        yield Finding(
            "SPC308",
            f"attention_backend {name!r} is unknown",
            reading.route(KEY),
            help=f"did you mean {near}?" if near else "leave it out, or write FLASH_ATTN, FLASHINFER or TRITON_ATTN",
        )
