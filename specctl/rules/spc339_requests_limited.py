"""Speculation limits the server to 48 running requests, because nothing else is set.

Bad:

    sglang: --speculative-algorithm NGRAM

Good:

    sglang: --speculative-algorithm NGRAM --max-running-requests 48
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
SEVERITY = "advice"


def check(reading: Reading) -> Iterator[Finding]:
    """Where the engine chose the number."""
    limit = reading.effective.get("max_running_requests")
    if limit is not None and reading.around.args.get("max_running_requests") is None:
        yield Finding(
            "SPC339",
            f"with speculation SGLang runs at most {limit} requests at once; the rest waits",
            reading.route("speculative_algorithm"),
            help=f"write --max-running-requests {limit} (or more) to say what you want",
        )
