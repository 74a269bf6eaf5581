"""Flags of speculation are given, but no algorithm: they do nothing.

Bad:

    sglang: --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4

Good:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
SEVERITY = "warning"


def check(reading: Reading) -> Iterator[Finding]:
    """One finding, at the first such flag."""
    others = [
        value for key, value in reading.values.items() if key not in ("speculative_algorithm", "speculative_adaptive")
    ]
    if reading.off and others:
        typed = reading.get("speculative_algorithm")
        why = "no algorithm is given" if typed is None else f"the algorithm is {typed}"
        yield Finding(
            "SPC139",
            f"{why}: the other flags of speculation do nothing",
            others[0].route,
            help="add --speculative-algorithm EAGLE3, STANDALONE or NGRAM",
        )
    elif reading.off and reading.given("speculative_algorithm"):
        yield Finding(
            "SPC139",
            f"the algorithm {reading.get('speculative_algorithm')} leaves speculation off",
            reading.route("speculative_algorithm"),
            help="leave the flag out",
        )
