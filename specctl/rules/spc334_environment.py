"""An environment variable of speculation has a value that SGLang refuses, or is read by nobody.

env: {"SGLANG_RAGGED_VERIFY_MODE": "foo"}

Bad:

    sglang: --speculative-algorithm NGRAM

Good:

    sglang: --attention-backend fa3
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
MODES = ("static", "cap-accept", "compact")
GONE = ("SGLANG_ENABLE_SPEC_V2", "SGLANG_NGRAM_FORCE_GREEDY_VERIFY")


def check(reading: Reading) -> Iterator[Finding]:
    """The mode is validated for every algorithm."""
    env, name = reading.around.env, reading.notes.get("algorithm")
    mode = env.get("SGLANG_RAGGED_VERIFY_MODE")
    if mode is not None and mode not in MODES and name is not None:
        yield Finding("SPC334", f"SGLANG_RAGGED_VERIFY_MODE is {mode!r}; it takes {', '.join(MODES)}", help="unset it")
    for gone in GONE:
        if gone in env:
            yield Finding(
                "SPC334", f"{gone} is read by nobody in SGLang {reading.release}", help="unset it", severity="warning"
            )
    coordinated = str(env.get("SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION", "0")).lower() in ("1", "true")
    if (
        coordinated
        and name is not None
        and (name not in ("EAGLE", "EAGLE3", "DSPARK") or reading.effective.get("enable_multi_layer_eagle"))
    ):
        yield Finding(
            "SPC334",
            "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION needs single-layer EAGLE, EAGLE3 or DSPARK",
            help="unset it",
        )
