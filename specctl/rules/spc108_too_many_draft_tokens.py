"""More drafted tokens a step than the verification can take.

vLLM's rejection sampler asserts at most 128 drafted tokens a request and step; a larger count passes the
configuration and fails in the worker.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 1000, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("vllm",)
LIMIT = 128


def check(reading: Reading) -> Iterator[Finding]:
    """The count against the sampler's limit."""
    count = reading.effective.get("num_speculative_tokens")
    if count is not None and count > LIMIT:
        yield Finding(
            "SPC108",
            f"num_speculative_tokens is {count}; the sampler takes at most {LIMIT} and the worker fails",
            reading.route("num_speculative_tokens"),
            help="use 2 to 8; beyond that hardly anything is accepted",
            stage=FAILS,
        )
