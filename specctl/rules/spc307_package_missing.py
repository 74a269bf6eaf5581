"""The method needs a package that is not installed with the engine.

host: {"arctic_inference": false}

Bad:

    vllm: {"method": "suffix", "num_speculative_tokens": 8}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """Suffix decoding lives in arctic-inference."""
    if (
        reading.notes.get("method") == "suffix"
        and not reading.off
        and reading.around.host.get("arctic_inference", True) is False
    ):
        yield Finding(
            "SPC307",
            "suffix decoding needs the package arctic-inference, which is not installed",
            reading.route("method"),
            help="pip install arctic-inference==0.1.1",
        )
