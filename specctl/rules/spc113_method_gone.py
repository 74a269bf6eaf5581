"""The release still lists the method, but nothing runs it any more.

vLLM 0.31.0 takes `mlp_speculator` for a known word and then has no model class for it.

Bad:

    vllm: {"method": "mlp_speculator", "model": "org/speculator", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """One method so far."""
    if reading.notes.get("method") == "mlp_speculator" and not reading.off:
        yield Finding(
            "SPC113",
            f"MLP speculators no longer run in vLLM {reading.release}",
            reading.route("method"),
            help="use an EAGLE-3 head or a draft model for this target",
        )
