"""Which architectures run in which way, by the model type in config.json.

Native: the decoder of `specctl.runtime.models.native`. Flat: the network of transformers with our attention in it,
`specctl.runtime.models.flat`. What stands in neither runs through `specctl.runtime.models.hf`, one sequence at a time,
or is refused by transformers. The tests decode with every row of this table; ``docs/families.md`` is written from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The types that are another's under a name of their own: transformers knows the other.
ALIASES = {"mimo": "qwen2", "kimi_k2": "deepseek_v3"}
# Models of text that transformers has as a part of another alone.
TEXT_OF = {"step3p5": "step3p7"}
# The reasons for a refusal by name.
REFUSED = {
    "kimi_k3": "transformers has no model of this type",
}


@dataclass(frozen=True)
class Family:
    """``models``: what people call them; ``types``: model types of config.json; ``drafts``: the methods that their
    checkpoints can have beside n-gram, suffix and the heads that are trained for any target.
    """

    models: str
    types: tuple[str, ...]
    way: str
    drafts: str = ""
    notes: str = ""


NATIVE, FLAT, OTHER = "native", "adapter, one flat batch", "adapter, sequence by sequence"
_SNAPSHOTS = "recurrent state, rebuilt from an anchor after a rejected draft; prefixes are not shared"

FAMILIES = (
    Family("Llama 2 and 3, SmolLM2", ("llama",), NATIVE),
    Family("Mistral", ("mistral",), NATIVE, notes="sliding window"),
    Family("Qwen2, Qwen2.5", ("qwen2",), NATIVE),
    Family("Qwen3", ("qwen3",), NATIVE),
    Family("MiMo 7B", ("mimo",), NATIVE, "mtp"),
    Family("Mixtral", ("mixtral",), FLAT),
    Family("Qwen3-MoE", ("qwen3_moe",), FLAT),
    Family("Qwen3-Next", ("qwen3_next",), FLAT, "mtp", _SNAPSHOTS),
    Family("Qwen3.5, 3.6", ("qwen3_5", "qwen3_5_text"), FLAT, "mtp", _SNAPSHOTS),
    Family("Qwen3.5, 3.6 and 3.8 MoE", ("qwen3_5_moe", "qwen3_5_moe_text"), FLAT, "mtp", _SNAPSHOTS),
    Family("DeepSeek-V3, R1", ("deepseek_v3",), FLAT, "mtp", "latent attention"),
    Family("Kimi-K2", ("kimi_k2", "kimi_k25"), FLAT, notes="latent attention"),
    Family("Gemma 3", ("gemma3", "gemma3_text"), FLAT, notes="sliding window"),
    Family(
        "Gemma 4",
        ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"),
        FLAT,
        "mtp from the assistant's repository",
        "sliding window, layers that share keys and values",
    ),
    Family("gpt-oss", ("gpt_oss",), FLAT, notes="attention sinks, sliding window"),
    Family("GLM-4.5, 4.6", ("glm4_moe",), FLAT, "mtp"),
    Family("Ernie 4.5", ("ernie4_5", "ernie4_5_moe"), FLAT, "mtp"),
    Family("Step-3.5, 3.7", ("step3p5", "step3p7"), FLAT, "mtp, several layers", "sliding window"),
)

FLAT_TYPES = frozenset(kind for family in FAMILIES if family.way == FLAT for kind in family.types)
# Native types that cannot run natively (an unusual rotation, quantized weights) are flat too.
_ALSO_FLAT = frozenset({"llama", "mistral", "qwen2", "qwen3"})


def model_type(raw: Mapping[str, Any]) -> str:
    """The type of a config.json, under the name that transformers knows."""
    stated = str(raw.get("model_type", ""))
    return ALIASES.get(stated, stated)


def runs_flat(raw: Mapping[str, Any]) -> bool:
    """Whether the model of this config.json runs as one flat batch through transformers' layers."""
    return model_type(raw) in FLAT_TYPES | _ALSO_FLAT
