"""The config promises prediction layers that the checkpoint does not hold.

Quantization tools often drop them. Without them the engine drafts from uninitialised memory and accepts nothing.
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.modelinfo import ModelFacts
from specctl.modelinfo.describe import is_assistant
from specctl.modelinfo.families import mtp_family, mtp_layers
from specctl.modelinfo.weights import tensor_names

NEEDS = ("target",)


def applies(reading: Reading) -> bool:
    """MTP out of the target itself or a twin of it."""
    return not reading.off and reading.spec is not None and reading.spec.method.name == "mtp"


def check(reading: Reading) -> Iterator[Finding]:
    """The config's count against the names in the index."""
    facts: ModelFacts | None = reading.notes.get("draft") or reading.around.target_facts
    if facts is None or is_assistant(facts):  # an assistant of Gemma 4 is layers of prediction as a whole
        return
    family, names = mtp_family(facts), tensor_names(facts.path)
    layers = mtp_layers(facts, family) if family else None
    if names is None or not layers or facts.num_layers is None:
        return
    first = facts.num_layers
    inside = any(".mtp" in f".{name}" or f"layers.{first}." in name or "nextn" in name for name in names)
    if not inside:
        yield Finding(
            "SPC228",
            f"{facts.name} declares {layers} prediction layers, but its weights hold none (no layers.{first})",
            (),
            help="use a checkpoint that kept them, or name one in the setting as the draft",
            stage=FAILS,
        )
