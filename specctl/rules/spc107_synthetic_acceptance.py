# ruff: noqa: E501 (examples stand on one line)
"""The forced acceptance of a measurement is incomplete or impossible.

`rejection_sample_method: "synthetic"` takes either a rate for each drafted token (each between 0 and 1, never rising)
or one mean length between 1 and k + 1 that counts the bonus token. Without `synthetic` the two keys are refused.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "rejection_sample_method": "synthetic"}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4, "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.8, 0.5, 0.2]}
"""

from collections.abc import Iterator
from itertools import pairwise

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
RATES, LENGTH = "synthetic_acceptance_rates", "synthetic_acceptance_length"


def check(reading: Reading) -> Iterator[Finding]:
    """Rates or a length, exactly one, and within bounds."""
    rates, length = reading.get(RATES), reading.get(LENGTH)
    count = reading.effective.get("num_speculative_tokens")
    if reading.get("rejection_sample_method", "standard") != "synthetic":
        key = RATES if rates is not None else LENGTH
        if rates is not None or length is not None:
            yield Finding(
                "SPC107",
                f"{key} needs rejection_sample_method synthetic",
                reading.route(key),
                at_key=True,
                help='add "rejection_sample_method": "synthetic", or leave the key out',
            )
    elif rates is None and length is None:
        yield Finding(
            "SPC107",
            "synthetic acceptance needs rates or a length",
            reading.route("rejection_sample_method"),
            help=f'add "{LENGTH}": 2.5',
        )
    elif rates is not None and length is not None:
        yield Finding(
            "SPC107",
            "rates and a length exclude each other",
            reading.route(LENGTH),
            at_key=True,
            help="keep one of them",
        )
    elif length is not None and count is not None and not 1 <= length <= count + 1:
        yield Finding(
            "SPC107",
            f"the synthetic length {length:g} must lie between 1 and k + 1 = {count + 1}",
            reading.route(LENGTH),
            help="it counts the bonus token, so 1 means that nothing is accepted",
        )
    elif rates is not None and count is not None:
        yield from _rates(reading, rates, count)


def _rates(reading: Reading, rates: list[float], count: int) -> Iterator[Finding]:
    if len(rates) != count:
        yield Finding(
            "SPC107",
            f"there are {len(rates)} rates for {count} drafted tokens",
            reading.route(RATES),
            help=f"give exactly {count} rates",
        )
    elif any(not 0 <= rate <= 1 for rate in rates):
        yield Finding(
            "SPC107", "each rate must lie between 0 and 1", reading.route(RATES), help="write 0.8 for 80 percent"
        )
    elif any(later > earlier for earlier, later in pairwise(rates)):
        yield Finding(
            "SPC107",
            "the rates may not rise from one place to the next",
            reading.route(RATES),
            help="rate i says how often the first i + 1 tokens are all accepted",
        )
