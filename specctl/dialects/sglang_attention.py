"""Which attention backend and page size SGLang chooses; a tree of drafts hangs on both."""

from __future__ import annotations

from typing import Any

from specctl.dialects.reading import Reading

HOPPER = ("h100", "h200", "h20", "h800", "gh200")
BLACKWELL = ("b100", "b200", "b300", "gb200", "gb300")
MLA_TYPES = frozenset(
    {
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "kimi_k2",
        "kimi_k25",
        "longcat_flash",
        "glm_moe_dsa",
        "bailing_moe_v2_5",
        "minicpm3",
        "deepseek_vl_v2",
        "mistral_large_3",
    }
)
SPARSE = frozenset({"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"})
_PAGES = {
    "flashmla": (64,),
    "trtllm_mla": (32, 64),
    "tokenspeed_mla": (32, 64),
    "cutedsl_mla": (32, 64),
    "trtllm_mha": (16, 32, 64, 128),
    "hpc_ops": (64,),
}


def attention(reading: Reading, effective: dict[str, Any]) -> None:
    """Fill `attention_backend`, `prefill_…`, `decode_…` and `page_size`."""
    args = reading.around.args
    prefill, decode = args.get("prefill_attention_backend"), args.get("decode_attention_backend")
    backend = prefill if prefill is not None and prefill == decode else args.get("attention_backend")
    if backend is None:
        backend = _default(reading)
    effective["attention_backend"] = backend
    effective["prefill_attention_backend"], effective["decode_attention_backend"] = prefill, decode
    used = [backend, prefill, decode, reading.get("speculative_draft_attention_backend")]
    effective["page_size"] = _page(reading, used, args.get("page_size"))


def _page(reading: Reading, used: list[str | None], given: Any) -> int:
    page = given if isinstance(given, int) else 1
    if given is None and reading.notes["architecture"] in SPARSE and used[0] in ("dsa", "nsa"):
        page = 64
    for name in used:
        allowed = _PAGES.get(str(name))
        draft_only = name is not None and name == used[3] and name not in used[:3] and name != "trtllm_mha"
        if allowed and page not in allowed and not draft_only:
            if given is not None:
                reading.change(
                    "SPC323",
                    "page_size",
                    given,
                    64,
                    f"the attention backend {name} needs it",
                    f"write --page-size {allowed[-1]}",
                )
            page = 64
    return page


def _default(reading: Reading) -> str:
    kind = (reading.around.platform or "h100").lower()
    target = reading.around.target_facts
    model_type = target.model_type if target else ""
    architecture = reading.notes["architecture"]
    if reading.notes["device"] == "cpu":
        return "intel_amx" if reading.around.host.get("amx") else "torch_native"
    if reading.notes["device"] in ("xpu", "npu"):
        return "intel_xpu" if reading.notes["device"] == "xpu" else "ascend"
    if architecture in SPARSE:
        return "dsa"
    if kind.startswith(("mi", "gfx")):
        return "aiter"
    return _nvidia(reading, kind, model_type, architecture)


def _nvidia(reading: Reading, kind: str, model_type: str, architecture: str | None) -> str:
    topk = reading.get("speculative_eagle_topk")
    page = reading.around.args.get("page_size")
    if model_type in MLA_TYPES:
        return "fa3" if kind.startswith(HOPPER) else "trtllm_mla" if kind.startswith(BLACKWELL) else "flashinfer"
    if architecture == "GptOssForCausalLM":
        return "fa3" if kind.startswith(HOPPER) else "trtllm_mha" if kind.startswith(BLACKWELL) else "triton"
    if kind.startswith(HOPPER):
        return "fa3" if topk is None or (topk == 1 and page in (None, 1)) else "flashinfer"
    if kind.startswith(BLACKWELL):
        off = reading.get("speculative_algorithm") is None
        return "trtllm_mha" if topk == 1 or (off and topk is None) else "flashinfer"
    return "flashinfer"
