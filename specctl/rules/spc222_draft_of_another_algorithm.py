# ruff: noqa: E501 (examples stand on one line)
"""The draft was made for another algorithm than the one given.

SGLang does not upgrade the algorithm by itself: an EAGLE-3 head needs EAGLE3, a language model STANDALONE.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512}
draft: {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "vocab_size": 512, "draft_vocab_size": 100}

Bad:

    sglang: --model-path ./target --speculative-algorithm EAGLE --speculative-draft-model-path ./draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4

Good:

    sglang: --model-path ./target --speculative-algorithm EAGLE3 --speculative-draft-model-path ./draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo.families import is_eagle3_head, is_head

ENGINES = ("sglang",)
NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """Algorithms with a draft of one certain kind."""
    return reading.notes.get("algorithm") in ("EAGLE", "EAGLE3", "STANDALONE") and reading.given(
        "speculative_draft_model_path"
    )


def check(reading: Reading) -> Iterator[Finding]:
    """What the draft's class says against what the algorithm needs."""
    name, draft = reading.notes["algorithm"], reading.notes["draft"]
    eagle3 = is_eagle3_head(draft)
    eagle1 = not eagle3 and (draft.architecture.startswith("Eagle") or draft.architecture.endswith("Eagle"))
    right = "EAGLE3" if eagle3 else "EAGLE" if eagle1 else "STANDALONE" if not is_head(draft) else None
    if name == "EAGLE" and not eagle3:
        return
    if name == right or right is None or (name == "EAGLE3" and draft.name == reading.around.target):
        return
    what = {"EAGLE3": "an EAGLE-3 head", "EAGLE": "an EAGLE head", "STANDALONE": "a language model of its own"}[right]
    route = reading.route("speculative_algorithm")
    yield Finding(
        "SPC222",
        f"the draft {draft.name} is {what} ({draft.architecture}), not what {name} needs",
        route,
        help=f"write --speculative-algorithm {right}",
        stage=FAILS,
        fix=Fix(route, right),
    )
