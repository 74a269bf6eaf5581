# ruff: noqa: E501 (examples stand on one line)
"""extract_hidden_states runs with one token and a list of layers only; anything else fails in the worker.

Bad:

    vllm: {"method": "extract_hidden_states", "num_speculative_tokens": 2, "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": [1, 3]}}}

Good:

    vllm: {"method": "extract_hidden_states", "num_speculative_tokens": 1, "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": [1, 3]}}}
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """Count, then layers."""
    if reading.notes.get("method") != "extract_hidden_states":
        return
    count = reading.effective.get("num_speculative_tokens")
    if count is not None and count > 1:
        yield Finding(
            "SPC114",
            f"extract_hidden_states runs with one drafted token only, not {count}",
            reading.route("num_speculative_tokens"),
            help='write "num_speculative_tokens": 1',
            stage=FAILS,
        )
    config = reading.get("draft_model_config")
    inner = config.get("hf_config") if isinstance(config, dict) else None
    if not (isinstance(inner, dict) and inner.get("eagle_aux_hidden_state_layer_ids")):
        yield Finding(
            "SPC114",
            "extract_hidden_states needs the layers to dump",
            reading.route("method"),
            stage=FAILS,
            help='add "draft_model_config": {"hf_config": {"eagle_aux_hidden_state_layer_ids": [2, 16, 29]}}',
        )
