# ruff: noqa: SIM905 (a list of words reads better as one text)
# ruff: noqa: E501 (examples stand on one line)
"""The quantization given for the draft contradicts the draft's own config, or is unknown.

draft: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "quantization_config": {"quant_method": "gptq"}}
target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}

Bad:

    vllm: {"model": "./draft", "num_speculative_tokens": 3, "quantization": "fp8"}

Good:

    vllm: {"model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading, shown
from specctl.dialects.vllm import MODEL_FREE

ENGINES = ("vllm",)
KEY = "quantization"
# Names registered in vLLM 0.31.0; a plug-in may add more.
KNOWN = frozenset(
    (
        "awq auto_awq fp8 fbgemm_fp8 fp_quant modelopt modelopt_fp4 modelopt_mxfp8 modelopt_mixed auto_gptq "
        "gptq gptq_marlin awq_marlin humming compressed-tensors experts_int8 quark moe_wna16 torchao inc "
        "mxfp4 gpt_oss_mxfp4 deepseek_v4_fp8 online fp8_per_tensor fp8_per_block fp8_per_channel "
        "int8_per_channel_weight_only nvfp4_per_token mxfp8"
    ).split()
)
COMPATIBLE = {
    "gptq": {"gptq", "gptq_marlin", "auto_gptq", "moe_wna16"},
    "awq": {"awq", "awq_marlin", "moe_wna16"},
    "compressed-tensors": {"compressed-tensors"},
    "fp8": {"fp8", "fbgemm_fp8"},
}


def check(reading: Reading) -> Iterator[Finding]:
    """Empty words, then the draft's own method."""
    wanted, draft = reading.get(KEY), reading.notes.get("draft")
    if wanted is None or reading.off or reading.notes.get("method") in MODEL_FREE:
        return
    own = draft.quant_method if draft else None
    if wanted not in KNOWN and not own:
        yield Finding(
            "SPC208", f"quantization {shown(wanted)} is unknown", reading.route(KEY), help="leave the key out"
        )
    elif own and wanted not in COMPATIBLE.get(own, {own}):
        yield Finding(
            "SPC208",
            f"quantization {shown(wanted)} contradicts the draft's own config, which says {own}",
            reading.route(KEY),
            help="leave the key out; the engine reads the checkpoint's own quantization",
        )
