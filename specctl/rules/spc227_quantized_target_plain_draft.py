# ruff: noqa: E501 (examples stand on one line)
"""The target is quantized, the draft is not; an engine may load the draft as if it were.

SGLang passes the target's --quantization on to the draft. Prediction layers that a quantized checkpoint keeps in full
precision are another case: a loader that misses this accepts exactly nothing.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "quantization_config": {"quant_method": "gptq"}}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512}

Bad:

    sglang: --model-path ./target --speculative-algorithm EAGLE3 --speculative-draft-model-path ./draft

Good:

    sglang: --model-path ./target --speculative-algorithm EAGLE3 --speculative-draft-model-path ./draft --speculative-draft-model-quantization unquant
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

NEEDS = ("target",)
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Any method that drafts with weights."""
    spec = reading.spec
    return not reading.off and spec is not None and (spec.method.needs_model or spec.method.optional_model)


def check(reading: Reading) -> Iterator[Finding]:
    """A plain draft beside a quantized target, then plain layers inside one."""
    target, draft, spec = reading.around.target_facts, reading.notes.get("draft"), reading.spec
    assert target is not None
    assert spec is not None
    if target.quant_method is None:
        return
    apart = draft is not None and draft.path != target.path and draft.quant_method is None
    if reading.engine == "sglang" and apart and spec.draft.quantization is None:
        yield Finding(
            "SPC227",
            f"the target is quantized ({target.quant_method}), the draft is not",
            reading.route("speculative_draft_model_path"),
            help="add --speculative-draft-model-quantization unquant",
        )
    found = target.config.get("quantization_config")
    listed = (
        [str(each) for key in ("ignore", "modules_to_not_convert") for each in (found.get(key) or ())]
        if isinstance(found, dict)
        else []
    )
    if spec.method.name == "mtp" and any("mtp" in each for each in listed):
        yield Finding(
            "SPC227",
            "the prediction layers are kept in full precision inside a quantized target",
            (),
            help="watch the acceptance: exactly 1.000 tokens a step means that the layers were loaded wrongly",
        )
