# ruff: noqa: E501 (examples stand on one line)
"""The draft's sliding window or sink is impossible, or without effect.

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-draft-window-size -1

Good:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-draft-window-size 512 --speculative-draft-sink-size 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
WINDOW, SINK = "speculative_draft_window_size", "speculative_draft_sink_size"


def check(reading: Reading) -> Iterator[Finding]:
    """Window, then sink; SGLang looks at them for every algorithm."""
    window, sink = reading.get(WINDOW), reading.get(SINK)
    name = reading.notes.get("algorithm")
    if window is not None and window <= 0:
        yield Finding(
            "SPC135", f"the draft window is {window}; at least 1 was wanted", reading.route(WINDOW), help="leave it out"
        )
    elif window is not None and name not in ("EAGLE", "EAGLE3", "DFLASH", None):
        yield Finding(
            "SPC135",
            f"the draft window has no effect with {name}",
            reading.route(WINDOW),
            help="leave it out",
            severity="warning",
        )
    if sink is not None and sink < 0:
        yield Finding(
            "SPC135", f"the draft sink is {sink}; it may not be negative", reading.route(SINK), help="leave it out"
        )
    elif sink is not None and window is None:
        yield Finding(
            "SPC135",
            "a draft sink needs a draft window",
            reading.route(SINK),
            help="add --speculative-draft-window-size 512",
        )
