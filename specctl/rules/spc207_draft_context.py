# ruff: noqa: E501 (examples stand on one line)
"""The draft's context limit is above what the draft or the target can hold.

draft: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "max_position_embeddings": 128}
target: {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "max_position_embeddings": 512}

Bad:

    vllm: {"model": "./draft", "num_speculative_tokens": 3, "max_model_len": 256}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """Against the draft's positions, then against the target's limit."""
    wanted, draft = reading.get("max_model_len"), reading.notes.get("draft")
    if wanted is None or reading.off or draft is None:
        return
    own = draft.max_positions if draft else None
    relaxed = str(reading.around.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0")) not in ("0", "", "false")
    target = reading.around.target_facts
    limit = reading.around.args.get("max_model_len") or (target.max_positions if target else None)
    if own is not None and wanted > own and not relaxed:
        yield _finding(reading, wanted, f"the draft's own {own} positions", own)
    elif isinstance(limit, int) and wanted > limit:
        yield _finding(reading, wanted, f"the target's limit of {limit}", limit)


def _finding(reading: Reading, wanted: int, what: str, limit: int) -> Finding:
    return Finding(
        "SPC207",
        f"max_model_len {wanted} of the draft is above {what}",
        reading.route("max_model_len"),
        help=f"write {limit} or less, or leave it out",
    )
