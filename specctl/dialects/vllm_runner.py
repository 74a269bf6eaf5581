"""Which of vLLM's two model runners a setting is run by."""

from __future__ import annotations

from specctl.dialects.reading import Reading

FIRST_ONLY = frozenset({"ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "custom_class"})
VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"


def second_available(reading: Reading) -> bool:
    """Whether the platform has the second runner at all."""
    return bool(reading.around.host.get("gpu_runner_available", reading.around.platform != "cpu"))


def second_forced(reading: Reading) -> bool | None:
    """Whether the environment forces the second runner (True) or the first (False); None: vLLM chooses."""
    text = str(reading.around.env.get(VARIABLE, "")).strip().lower()
    return None if not text else text in ("1", "true")


def parallel_outside_blocks(reading: Reading) -> bool:
    """Whether drafts are made in parallel by another method than DFlash and DSpark, which the second runner lacks."""
    return bool(reading.effective.get("parallel_drafting")) and reading.notes.get("method") not in ("dflash", "dspark")


def first_runner(reading: Reading) -> bool:
    """Whether the first runner will run this setting."""
    method = reading.notes.get("method")
    if method in FIRST_ONLY or parallel_outside_blocks(reading):
        return True
    return method != "dspark" and (not second_available(reading) or second_forced(reading) is False)
