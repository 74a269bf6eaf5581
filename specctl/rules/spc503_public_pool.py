# ruff: noqa: E501 (examples stand on one line)
"""TensorRT-LLM's n-gram lets all requests share one pool by default.

One user's text then drafts another's, and speed depends on who else is served. `is_public_pool: false` keeps each
request to itself, as vLLM does.

Bad:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 2}

Good:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 2, is_public_pool: false}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("trtllm",)
SEVERITY = "advice"


def check(reading: Reading) -> Iterator[Finding]:
    """Where nothing is said."""
    if reading.notes.get("type") == "NGram" and not reading.given("is_public_pool"):
        yield Finding(
            "SPC503",
            "all requests share one n-gram pool by default",
            reading.route("decoding_type"),
            help="write is_public_pool: false to keep requests apart, or true to say that you want it",
        )
