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
        "FLASH_ATTN FLASH_ATTN_DIFFKV TRITON_ATTN TRITON_ATTN_DIFFKV TRITON_FLASH_ATTN ROCM_ATTN "
        "ROCM_AITER_MLA ROCM_AITER_TRITON_MLA ROCM_AITER_FA ROCM_AITER_MLA_SPARSE XPU_MLA_SPARSE TORCH_SDPA "
        "FLASHINFER TRITON_FLASHINFER FLASHINFER_MLA TOKENSPEED_MLA FLASHINFER_MLA_SPARSE "
        "FLASHINFER_MLA_SPARSE_SM120 FLASHINFER_MLA_SPARSE_SM90 TRITON_MLA CUTLASS_MLA FLASHMLA "
        "FLASHMLA_SPARSE FLASHMLA_SPARSE_DSV4 FLASHINFER_MLA_SPARSE_DSV4 ROCM_FLASHMLA_SPARSE_DSV4 "
        "FLASHMLA_SPARSE_DSV41 FLASHINFER_MLA_SPARSE_DSV41 FLASHMLA_MEGA_ATTN_DSV41 B12X FLASH_ATTN_MLA "
        "FLASH_ATTN_MLA_SPARSE MINIMAX_M3_SPARSE CUTLASS_MSA TRITON_MSA NO_ATTENTION FLEX_ATTENTION HPC_ATTN "
        "ROCM_AITER_UNIFIED_ATTN CPU_ATTN CPU_MLA AMX_MLA TURBOQUANT CUSTOM"
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
