# ruff: noqa: SIM905 (a list of words reads better as one text)
"""The draft's class does not exist for the chosen method.

vLLM wraps a head's class name by method: `LlamaForCausalLM` becomes `EagleLlamaForCausalLM` for eagle. Where the
wrapped name is not registered, it refuses.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512}

Bad:

    vllm: {"method": "eagle", "model": "./draft", "num_speculative_tokens": 2}

Good:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 2}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("draft",)
# Classes of draft heads registered in vLLM 0.31.0.
KNOWN = {
    "eagle": frozenset(
        (
            "EagleLlamaForCausalLM EagleLlama4ForCausalLM EagleMiniCPMForCausalLM EagleCohereForCausalLM "
            "EagleMistralForCausalLM EagleMistralLarge3ForCausalLM EagleDeepSeekMTPModel"
        ).split()
    ),
    "eagle3": frozenset(
        (
            "Eagle3LlamaForCausalLM LlamaForCausalLMEagle3 Eagle3MiniMaxM2ForCausalLM Eagle3Qwen2_5vlForCausalLM "
            "Eagle3Qwen3vlForCausalLM Eagle3Qwen3ForCausalLM PeagleLlamaForCausalLM PeagleQwen3ForCausalLM "
            "PEagleDraftModel Eagle3DeepseekV2ForCausalLM Eagle3DeepseekV3ForCausalLM"
        ).split()
    ),
    "dflash": frozenset(
        (
            "DFlashDraftModel DFlash2DraftModel LiLiCorrDraftModel DFlashMuseGlimmerAssistantModel "
            "DFlashLagunaForCausalLM"
        ).split()
    ),
}


def applies(reading: Reading) -> bool:
    """The methods that wrap class names."""
    return not reading.off and reading.notes.get("method") in KNOWN and "served" not in reading.notes


def check(reading: Reading) -> Iterator[Finding]:
    """The wrapped name against the list."""
    method, draft = reading.notes["method"], reading.notes["draft"]
    if draft.speculators is not None or not draft.architecture:
        return
    wrapped = wrap(method, draft.architecture)
    if wrapped in KNOWN[method]:
        return
    better = next(
        (name for name in KNOWN if wrap(name, draft.architecture) in KNOWN[name] and draft.architecture in KNOWN[name]),
        None,
    )
    help_text = (
        f'write "method": "{better}"' if better else "use a head that was made for this method, or another method"
    )
    yield Finding(
        "SPC209",
        f"method {method} would load the draft as {wrapped}, a class that does not exist",
        reading.route("model"),
        help=help_text,
    )


def wrap(method: str, name: str) -> str:
    """The class name that vLLM asks its registry for."""
    if method == "eagle":
        return name if name.startswith("Eagle") else f"Eagle{name}"
    if method == "eagle3":
        return name if name.startswith(("Eagle3", "P")) or name.endswith("Eagle3") else f"Eagle3{name}"
    return name if name.startswith(("DFlash", "LiLi")) or name.endswith("DFlash") else f"DFlash{name}"
