"""The attention backend is not one of the engine's.

Bad:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "attention_backend": "turbo"}

Good:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "attention_backend": "FLASH_ATTN"}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading, nearest
from specctl.dialects.words import VLLM_ATTENTION

ENGINES = ("vllm",)
KEY = "attention_backend"


def check(reading: Reading) -> Iterator[Finding]:
    """Names are read without regard to case; `auto` means unset."""
    name = reading.get(KEY)
    if isinstance(name, str) and name.lower() != "auto" and name.upper() not in VLLM_ATTENTION:
        near = nearest(name, VLLM_ATTENTION)
        yield Finding(
            "SPC308",
            f"attention_backend {name!r} is unknown",
            reading.route(KEY),
            help=f"did you mean {near}?" if near else "leave it out, or write FLASH_ATTN, FLASHINFER or TRITON_ATTN",
        )
