# ruff: noqa: E501 (examples stand on one line)
"""The head names another target than this one as the model it was trained for.

Shapes may fit all the same; acceptance is usually much lower than with the right pair.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 128}
draft: {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_config": {"verifier": {"name_or_path": "org/other"}}}

Bad:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.fit import is_named

NEEDS = ("target", "draft")
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Heads that were not served as the target."""
    return (
        not reading.off
        and reading.spec is not None
        and reading.spec.method.uses_hidden_states
        and "served" not in reading.notes
    )


def check(reading: Reading) -> Iterator[Finding]:
    """The recorded name against the target's."""
    verifier, target = reading.notes["draft"].verifier, reading.around.target
    if verifier and target and not is_named(verifier, target):
        yield Finding(
            "SPC216",
            f"the head was trained for {verifier}, the target is {target}",
            help="use the head made for this target, and measure acceptance before you trust it",
        )
