"""Different vocabularies are for a draft model with greedy drafting only.

Bad:

    vllm: {"method": "mtp", "num_speculative_tokens": 1, "use_heterogeneous_vocab": true}

Good:

    vllm: {"method": "draft_model", "model": "org/draft", "num_speculative_tokens": 3, "use_heterogeneous_vocab": true}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
KEY = "use_heterogeneous_vocab"


def check(reading: Reading) -> Iterator[Finding]:
    """Method first, then the way of drafting."""
    if not reading.get(KEY, False):
        return
    method = reading.notes.get("method")
    if method != "draft_model":
        yield Finding(
            "SPC111",
            f"{KEY} is for method draft_model only, not {method}",
            reading.route(KEY),
            at_key=True,
            help="leave the key out",
        )
    elif reading.get("draft_sample_method", "greedy") != "greedy":
        yield Finding(
            "SPC111",
            f"{KEY} needs greedy drafting",
            reading.route("draft_sample_method"),
            help='leave "draft_sample_method" out',
        )
