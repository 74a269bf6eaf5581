"""Async scheduling is forced on, and this method does not work with it.

args: {"async_scheduling": true}

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
WITHOUT = frozenset({"ngram", "suffix", "medusa", "custom_class", "mlp_speculator"})


def check(reading: Reading) -> Iterator[Finding]:
    """Only where it was forced; else the engine turns it off by itself."""
    if reading.around.args.get("async_scheduling") is not True or reading.off or reading.around.platform == "cpu":
        return
    method = reading.notes.get("method")
    if method in WITHOUT:
        yield Finding(
            "SPC303",
            f"method {method} does not work with async scheduling, which is forced on",
            reading.route("method"),
            help="leave out --async-scheduling",
        )
    elif reading.get("disable_padded_drafter_batch"):
        yield Finding(
            "SPC303",
            "disable_padded_drafter_batch does not go with async scheduling, which is forced on",
            reading.route("disable_padded_drafter_batch"),
            at_key=True,
            help="keep one of the two",
        )
