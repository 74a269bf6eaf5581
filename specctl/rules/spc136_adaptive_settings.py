# ruff: noqa: E501 (examples stand on one line)
"""The adaptive draft length has a broken file, or a start that is no candidate.

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-adaptive --speculative-num-steps 4

Good:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-adaptive --speculative-num-steps 3
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
STEPS, FILE = "speculative_num_steps", "speculative_adaptive_config"


def check(reading: Reading) -> Iterator[Finding]:
    """File, then start; a file without the switch is never read."""
    fault, options = reading.notes.get("adaptive_fault"), reading.notes.get("candidates")
    steps = reading.get(STEPS)
    if fault:
        yield Finding(
            "SPC136",
            str(fault),
            reading.route(FILE),
            help="--speculative-adaptive-config takes the name of a JSON file",
        )
    elif options and steps is not None and steps not in options:
        yield Finding(
            "SPC136",
            f"steps {steps} is none of the adaptive candidates {', '.join(map(str, options))}",
            reading.route(STEPS),
            help="write one of them, or leave it out",
        )
    if reading.given(FILE) and not reading.get("speculative_adaptive"):
        yield Finding(
            "SPC136",
            "the adaptive file is never read without --speculative-adaptive",
            reading.route(FILE),
            help="add --speculative-adaptive",
            severity="warning",
        )
