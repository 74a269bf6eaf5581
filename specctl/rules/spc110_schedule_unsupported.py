# ruff: noqa: E501 (examples stand on one line)
"""This method cannot follow a schedule by batch size.

vLLM's suffix, Medusa and n-gram on the GPU assert in the worker that the scheduled count equals the configured one.

Bad:

    vllm: {"method": "suffix", "num_speculative_tokens": 8, "num_speculative_tokens_per_batch_size": [[1, 8, 8], [9, 64, 2]]}

Good:

    vllm: {"method": "suffix", "num_speculative_tokens": 8}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("vllm",)
KEY = "num_speculative_tokens_per_batch_size"


def check(reading: Reading) -> Iterator[Finding]:
    """Only where an entry really differs from the count."""
    method, entries = reading.notes.get("method"), reading.effective.get(KEY)
    count = reading.effective.get("num_speculative_tokens")
    if entries and method in ("suffix", "medusa", "ngram_gpu") and any(entry[2] != count for entry in entries):
        yield Finding(
            "SPC110",
            f"method {method} cannot follow a schedule; the worker fails",
            reading.route(KEY),
            at_key=True,
            help="leave the schedule out, or use ngram, a draft model or an EAGLE head",
            stage=FAILS,
        )
