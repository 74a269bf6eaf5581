"""vLLM looks up suffixes of exactly 5 tokens where no bound is given.

Shorter suffixes find a match more often; 2 to 4 is a usual choice for code and edits.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
SEVERITY = "advice"


def check(reading: Reading) -> Iterator[Finding]:
    """Neither bound given."""
    given = reading.given("prompt_lookup_min") or reading.given("prompt_lookup_max")
    if reading.notes.get("method") in ("ngram", "ngram_gpu") and not given and not reading.off:
        yield Finding(
            "SPC501",
            "no bounds are given: vLLM looks up suffixes of exactly 5 tokens",
            reading.route("method"),
            help='add "prompt_lookup_min": 2, "prompt_lookup_max": 4',
        )
