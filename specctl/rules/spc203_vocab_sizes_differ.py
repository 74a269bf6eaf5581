"""Draft and target have vocabularies of different size.

vLLM compares `vocab_size` of the two configs for a draft model, padding included, and refuses any difference. SGLang
finds out when the worker starts. Where only the padding differs, the tokens are the same, and vLLM's
`use_heterogeneous_vocab` (greedy drafting) helps. The bundled runtime goes by the tokens and runs such a pair as it is.

target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256}
draft: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000}

Bad:

    vllm: {"method": "draft_model", "model": "./draft", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "draft_model", "model": "./draft", "num_speculative_tokens": 3, "use_heterogeneous_vocab": true}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, REFUSES, Finding, Reading
from specctl.modelinfo.vocabulary import OTHER, SAME, Likeness, likeness_of, sizes

NEEDS = ("target", "draft")
ROUTES = {"vllm": "model", "sglang": "speculative_draft_model_path", "trtllm": "speculative_model", "specctl": "model"}
PADDING = 1024


def applies(reading: Reading) -> bool:
    """Only methods whose draft is a language model of its own."""
    if reading.off or reading.effective.get("use_heterogeneous_vocab"):
        return False
    spec = reading.spec
    by_name = spec is not None and spec.method.name in ("draft_model", "pard") and spec.model is not None
    return reading.notes.get("method") == "draft_model" if reading.engine == "vllm" else by_name


def check(reading: Reading) -> Iterator[Finding]:
    """Equal sizes, as the engines compare them."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    differ = sizes(target, draft.vocab_size)
    if differ is None:
        return
    alike = likeness_of(target, draft)
    if reading.engine == "specctl" and alike is not None and alike.kind != OTHER:
        return  # the bundled runtime goes by the tokens
    near = abs(differ[0] - differ[1]) < PADDING
    note = _note(alike, near)
    help_text = "use a draft that was made with the target's tokenizer"
    if reading.engine == "vllm":
        help_text += ', or set "use_heterogeneous_vocab": true (greedy drafting)'
    yield Finding(
        "SPC203",
        f"the draft's vocabulary has {differ[1]} tokens, the target's {differ[0]}",
        reading.route(ROUTES.get(reading.engine, "model")),
        help=help_text,
        notes=note,
        stage=FAILS if reading.engine == "sglang" else REFUSES,
    )


def _note(alike: Likeness | None, near: bool) -> tuple[str, ...]:
    if alike is not None:
        return (
            (f"the tokenizers are the same ({alike.evidence}): only the padding differs",) if alike.kind == SAME else ()
        )
    return ("the sizes are close: probably the same tokenizer with other padding",) if near else ()
