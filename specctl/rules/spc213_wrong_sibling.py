"""The head was made for a target of another width.

A head reads the target's hidden states, so the width it was made for must be the target's. Nothing compares them
before the weights are loaded.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 8192}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512, "hidden_size": 4096}

Bad:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.fit import widths

NEEDS = ("target", "draft")
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Heads on hidden states that come as files of their own."""
    spec = reading.spec
    return (
        not reading.off
        and spec is not None
        and spec.method.name in ("eagle", "eagle3")
        and reading.notes.get("served") is None
    )


def check(reading: Reading) -> Iterator[Finding]:
    """The head's `target_hidden_size`, else its own width, against the target's."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    differ = widths(target, draft)
    if differ:
        yield Finding(
            "SPC213",
            f"the head was made for a target of width {differ[1]}, this target has {differ[0]}",
            (),
            help="use the head that was trained for exactly this target",
        )
