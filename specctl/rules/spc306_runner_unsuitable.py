"""The model runner that is forced or available cannot run this method.

vLLM has two runners. DSpark and adaptive verification need the second; n-gram, suffix, Medusa and parallel drafting
outside DFlash and DSpark need the first, which is refused when `VLLM_USE_V2_MODEL_RUNNER=1` forces the second.

env: {"VLLM_USE_V2_MODEL_RUNNER": "1"}

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.vllm_runner import (
    FIRST_ONLY,
    VARIABLE,
    parallel_outside_blocks,
    second_available,
    second_forced,
)

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """What needs the second runner, then what cannot have it."""
    if reading.off and "served" not in reading.notes:
        return
    method = reading.notes.get("method")
    forced = second_forced(reading)
    has_second = second_available(reading) and forced is not False
    parallel = parallel_outside_blocks(reading)
    if method == "dspark" and not has_second:
        off = forced is False
        why = f"{VARIABLE}=0 turns off" if off else "this platform lacks"
        yield Finding(
            "SPC306",
            f"method dspark needs the second model runner, which {why}",
            reading.route("method"),
            help=f"unset {VARIABLE}" if off else "use another method on this platform",
        )
    if reading.get("enable_adaptive_verification") and (method in FIRST_ONLY or not has_second or parallel):
        yield Finding(
            "SPC306",
            f"enable_adaptive_verification needs the second model runner, which {method} cannot use here",
            reading.route("enable_adaptive_verification"),
            at_key=True,
            help="leave the key out",
        )
    if forced and (method in FIRST_ONLY or parallel):
        what = "parallel drafting" if parallel and method not in FIRST_ONLY else f"method {method}"
        yield Finding(
            "SPC306",
            f"VLLM_USE_V2_MODEL_RUNNER=1 forces a runner that cannot run {what}",
            reading.route("method"),
            help="unset VLLM_USE_V2_MODEL_RUNNER; vLLM then picks the right runner by itself",
        )
