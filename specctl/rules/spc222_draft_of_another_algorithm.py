# ruff: noqa: E501 (examples stand on one line)
"""The draft was made for another algorithm than the one given.

SGLang does not upgrade the algorithm by itself: an EAGLE-3 head needs EAGLE3, a language model STANDALONE. Nor does
TensorRT-LLM: MTP takes prediction layers, and a separate EAGLE-3 head needs Eagle (1.2.1) or Eagle3.

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
from specctl.dialects.trtllm_line import is_new
from specctl.modelinfo.families import is_eagle3_head, is_head

ENGINES = ("sglang", "trtllm")
NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """Algorithms with a draft of one certain kind."""
    if reading.engine == "trtllm":
        return reading.notes.get("method") in ("mtp", "draft_model") and reading.given("speculative_model")
    return reading.notes.get("algorithm") in ("EAGLE", "EAGLE3", "STANDALONE") and reading.given(
        "speculative_draft_model_path"
    )


def check(reading: Reading) -> Iterator[Finding]:
    """What the draft's class says against what the algorithm needs."""
    if reading.engine == "trtllm":
        yield from _separate_head(reading)
        return
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


def _separate_head(reading: Reading) -> Iterator[Finding]:
    """An EAGLE-3 head under a type of TensorRT-LLM that loads something else."""
    name, draft = reading.notes["type"], reading.notes["draft"]
    if is_eagle3_head(draft):
        right = "Eagle3" if is_new(reading.release) else "Eagle"
        route = reading.route("decoding_type")
        yield Finding(
            "SPC222",
            f"the draft {draft.name} is an EAGLE-3 head ({draft.architecture}), not what {name} needs",
            route,
            help=f"write decoding_type: {right}",
            stage=FAILS,
            fix=Fix(route, right) if reading.given("max_draft_len") else None,
        )
