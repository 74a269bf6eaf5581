"""The lower bound of the looked-up suffix lies above the upper one.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 5, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm", "specctl")


def check(reading: Reading) -> Iterator[Finding]:
    """Only n-gram looks at the bounds."""
    low, high = reading.effective.get("prompt_lookup_min"), reading.effective.get("prompt_lookup_max")
    if low is not None and high is not None and low > high and reading.notes.get("method") in ("ngram", "ngram_gpu"):
        yield Finding(
            "SPC106",
            f"prompt_lookup_min {low} is above prompt_lookup_max {high}",
            reading.route("prompt_lookup_min"),
            help=f"lower prompt_lookup_min to {high} or less, or raise prompt_lookup_max to {low}",
        )
