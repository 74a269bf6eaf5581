# ruff: noqa: E501 (examples stand on one line)
"""The setting accepts drafted tokens that the target would not have chosen: the output changes.

Relaxed acceptance, typical acceptance and thresholds below 1 trade faithfulness for speed; synthetic acceptance is
for measurements.

Bad:

    trtllm: speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3, use_relaxed_acceptance_for_thinking: true}

Good:

    trtllm: speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

SEVERITY = "advice"


def check(reading: Reading) -> Iterator[Finding]:
    """The spec's own verdict on itself."""
    spec = reading.spec
    if spec is not None and spec.acceptance.method in ("typical", "relaxed", "synthetic"):
        yield Finding(
            "SPC507",
            f"{spec.acceptance.method} acceptance changes the output",
            help="leave it out where answers must not change",
        )
