# ruff: noqa: E501 (examples stand on one line)
"""A Gemma 4 assistant draft does not run with EAGLE3.

draft: {"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant"}

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path ./draft

Good:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path ./draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)


def check(reading: Reading) -> Iterator[Finding]:
    """SGLang turns EAGLE and NEXTN into its own algorithm for it, but not EAGLE3."""
    if reading.notes.get("algorithm") == "EAGLE3" and reading.notes.get("gemma_draft"):
        route = reading.route("speculative_algorithm")
        yield Finding(
            "SPC223",
            "a Gemma 4 assistant draft runs with EAGLE or NEXTN, not with EAGLE3",
            route,
            help="write --speculative-algorithm EAGLE",
            fix=Fix(route, "EAGLE"),
        )
