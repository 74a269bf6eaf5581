"""Draft and target differ in number format or in the scaling of positions: they look like a pair of two generations.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "torch_dtype": "bfloat16"}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512, "torch_dtype": "float16"}

Bad:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

NEEDS = ("target", "draft")
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Heads, whose layer continues the target's own."""
    return not reading.off and reading.spec is not None and reading.spec.method.name in ("eagle", "eagle3")


def check(reading: Reading) -> Iterator[Finding]:
    """Number format, then rope."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    if target.dtype and draft.dtype and target.dtype != draft.dtype:
        yield Finding(
            "SPC226",
            f"the head is stored in {draft.dtype}, the target in {target.dtype}",
            (),
            help="set the number format explicitly (--dtype), so that both are loaded in one",
        )
    scaling = (_kind(target.text.get("rope_scaling")), _kind(draft.text.get("rope_scaling")))
    if draft.text.get("rope_scaling") is not None and scaling[0] != scaling[1]:
        yield Finding(
            "SPC226",
            f"the head scales positions as {scaling[1]}, the target as {scaling[0] or 'not at all'}",
            (),
            help="use the head that was trained for exactly this target",
        )


def _kind(scaling: object) -> str | None:
    if not isinstance(scaling, dict):
        return None
    found = scaling.get("rope_type") or scaling.get("type")
    return str(found) if found else None
