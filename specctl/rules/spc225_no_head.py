# ruff: noqa: E501 (examples stand on one line)
"""The method needs a head, and the draft is an ordinary language model.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 4096}
draft: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 4096, "num_hidden_layers": 28}

Bad:

    vllm: {"method": "eagle3", "model": "./draft", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "draft_model", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.modelinfo.families import is_head

ENGINES = ("vllm", "trtllm", "specctl")
NEEDS = ("draft",)
SEVERITY = "warning"


def applies(reading: Reading) -> bool:
    """EAGLE of any generation; several layers mark a model of its own."""
    return not reading.off and reading.spec is not None and reading.spec.method.name in ("eagle", "eagle3")


def check(reading: Reading) -> Iterator[Finding]:
    """Class and depth of the draft."""
    draft = reading.notes["draft"]
    if not is_head(draft) and (draft.num_layers or 0) > 2:
        route = reading.route("method")
        yield Finding(
            "SPC225",
            f"{draft.name} has {draft.num_layers} layers and is no {reading.spec.method.name if reading.spec else ''} head",
            route,
            help='write "method": "draft_model"' if reading.engine == "vllm" else "use it as a draft model",
            fix=Fix(route, "draft_model") if reading.engine == "vllm" and route else None,
        )
