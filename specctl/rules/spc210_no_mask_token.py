"""A draft that fills masks in one forward lacks the mask token in its config; the worker fails.

target: {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 512}
draft: {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "vocab_size": 512}

Bad:

    vllm: {"method": "dflash", "model": "./draft", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("vllm",)
NEEDS = ("draft",)


def applies(reading: Reading) -> bool:
    """Parallel drafting with a draft of its own."""
    drafts = reading.effective.get("parallel_drafting") and reading.notes.get("method") in (
        "dflash",
        "draft_model",
        "eagle",
        "eagle3",
    )
    return not reading.off and bool(drafts) and "served" not in reading.notes


def check(reading: Reading) -> Iterator[Finding]:
    """Any of the five keys that hold it."""
    draft = reading.notes["draft"]
    if draft.mask_token_id is None and draft.speculators is None:
        yield Finding(
            "SPC210",
            f"{draft.name} names no mask token in its config.json; drafting in one forward fails in the worker",
            reading.route("model"),
            help='use a draft trained for it, or add "mask_token_id" to its config.json',
            stage=FAILS,
        )
