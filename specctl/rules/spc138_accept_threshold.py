"""An accept threshold lies outside 0 to 1; the kernel refuses it at run time.

Below 1 the output no longer follows the target's distribution.

Bad:

    sglang: --speculative-algorithm EAGLE --speculative-accept-threshold-single 7

Good:

    sglang: --speculative-algorithm EAGLE --speculative-accept-threshold-single 1.0
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("sglang",)
KEYS = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")


def check(reading: Reading) -> Iterator[Finding]:
    """Both thresholds."""
    for key in KEYS:
        value = reading.get(key)
        if value is None or reading.off:
            continue
        if not 0 <= value <= 1:
            yield Finding(
                "SPC138",
                f"--{key.replace('_', '-')} is {value:g}; between 0 and 1 was wanted",
                reading.route(key),
                help="leave it out (1.0 keeps the target's distribution)",
                stage=FAILS,
            )
        elif value < 1:
            yield Finding(
                "SPC138",
                f"--{key.replace('_', '-')} {value:g} accepts tokens that the target would not have sampled",
                reading.route(key),
                help="write 1.0 to keep the target's distribution",
                severity="warning",
            )
