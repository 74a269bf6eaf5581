"""A draft head is taken for an ordinary draft model, because no method is given and its folder does not tell.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512}

Bad:

    vllm: {"model": "./draft", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.families import is_eagle3_head, is_head

ENGINES = ("vllm",)
NEEDS = ("draft",)
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """Plain draft models only."""
    return not reading.off and reading.notes.get("method") == "draft_model"


def check(reading: Reading) -> Iterator[Finding]:
    """Its class says that it is a head."""
    draft = reading.notes["draft"]
    if is_head(draft):
        method = "eagle3" if is_eagle3_head(draft) else "dflash" if "DFlash" in draft.architecture else "eagle"
        yield Finding(
            "SPC211",
            f"{draft.architecture or draft.name} is a draft head, but it is loaded as an ordinary draft model",
            reading.route("model"),
            help=f'add "method": "{method}"',
        )
