# ruff: noqa: E501 (examples stand on one line)
"""In TensorRT-LLM 1.2.1 one-model EAGLE and MTP ignore temperature and top-p unless allow_advanced_sampling is true.

Bad:

    trtllm: speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: org/head}

Good:

    trtllm: speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: org/head, allow_advanced_sampling: true}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
SEVERITY = "advice"
KEY = "allow_advanced_sampling"


def check(reading: Reading) -> Iterator[Finding]:
    """Eagle as one model; MTP cannot sample at all."""
    if (
        is_new(reading.release)
        or reading.notes.get("type") not in ("Eagle", "MTP")
        or reading.get("eagle3_one_model") is False
    ):
        return
    if reading.notes["type"] == "Eagle" and not reading.get(KEY):
        yield Finding(
            "SPC504",
            "sampled requests are decoded greedily in this release",
            reading.route("decoding_type"),
            help=f"add {KEY}: true",
        )
