# ruff: noqa: SIM905 (a list of words reads better as one text)
"""One thing under the names of several engines: attention kernels, number formats, quantization of the draft."""

from __future__ import annotations

from typing import Any

VLLM_ATTENTION = frozenset(
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
SGLANG_ATTENTION = tuple(
    (
        "triton torch_native flex_attention dsa nsa qsa dsv4 compressed fa3 fa4 flashinfer "
        "llada2_cfg_flashinfer flashmla trtllm_mla cutedsl_mla tokenspeed_mla trtllm_mha hpc_ops "
        "minicpm_flashattn minicpm_flashinfer aiter wave intel_amx ascend intel_xpu"
    ).split()
)
_SAME_KERNELS = {"FLASH_ATTN": "fa3", "FLASHINFER": "flashinfer", "TRITON_ATTN": "triton", "FLASHMLA": "flashmla"}


def vllm_attention(name: Any) -> Any:
    """vLLM's word for attention kernels in either engine's words; None where it has none."""
    if str(name).upper() in VLLM_ATTENTION:
        return name
    return next((own for own, other in _SAME_KERNELS.items() if other == str(name)), None)


def sglang_attention(name: Any) -> Any:
    """SGLang's word for attention kernels in either engine's words; None where it has none."""
    return name if name in SGLANG_ATTENTION else _SAME_KERNELS.get(str(name).upper())


def vllm_cache(name: Any) -> Any:
    """vLLM's word for a number format of the cache."""
    return "bfloat16" if name == "bf16" else name


def sglang_cache(name: Any) -> Any:
    """SGLang's word for a number format of the cache: it has no plain `fp8`, which is e4m3 in vLLM."""
    return "fp8_e4m3" if name == "fp8" else name


def vllm_quantization(name: Any) -> Any:
    """vLLM's word for a quantization: a draft that is not quantized needs none there."""
    return None if name == "unquant" else name
