# ruff: noqa: E501 (examples stand on one line)
"""A checkpoint in the speculators format cannot be served as it is.

Bad:

    vllm: null

target: {"architectures": ["Eagle3Speculator"], "speculators_model_type": "medusa", "speculators_config": {"verifier": {"name_or_path": "./target"}}}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.vllm_resolve import SPECULATORS
from specctl.modelinfo import ModelFacts

ENGINES = ("vllm",)


def check(reading: Reading) -> Iterator[Finding]:
    """The target itself, or the draft, in that format."""
    served = reading.notes.get("served")
    facts = served or reading.notes.get("draft")
    if facts is None or facts.speculators is None:
        return
    fault = _fault(facts, served is not None)
    if fault:
        yield Finding(
            "SPC215",
            f"{facts.name} is a speculators checkpoint that {fault}",
            reading.route("model"),
            help="serve the target and give a head that this release reads",
        )


def _fault(facts: ModelFacts, served: bool) -> str | None:
    kind = facts.speculators_type
    if kind not in SPECULATORS:
        return f"holds {kind or 'an unnamed method'}, which this release cannot read"
    if served and facts.verifier is None:
        return "names no target (verifier)"
    layer = facts.config.get("transformer_layer_config")
    layer_type = layer.get("model_type") if isinstance(layer, dict) else None
    if kind in ("eagle3", "peagle") and layer_type not in (None, "llama", "qwen3"):
        return f"has a layer of type {layer_type}; only llama and qwen3 layers are read"
    if kind in ("dflash", "dflash2") and not facts.config.get("aux_hidden_state_layer_ids"):
        return "lacks aux_hidden_state_layer_ids"
    return None
