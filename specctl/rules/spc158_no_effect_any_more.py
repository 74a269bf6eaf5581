# ruff: noqa: E501 (examples stand on one line)
"""A key is still taken, but does nothing in this release.

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head, allow_advanced_sampling: true}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: org/head}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm import is_new

ENGINES = ("trtllm",)
SEVERITY = "warning"
KEY = "allow_advanced_sampling"


def check(reading: Reading) -> Iterator[Finding]:
    """One key so far."""
    if is_new(reading.release) and reading.given(KEY):
        yield Finding(
            "SPC158",
            f"{KEY} does nothing any more: sampling is told by each request",
            reading.route(KEY),
            at_key=True,
            help="leave it out",
            fix=Fix(reading.route(KEY), remove=True),
        )
