"""What a checkpoint is, from its JSON files and safetensors headers; no weights are loaded.

Belongs here: facts of one checkpoint (sizes, family, heads), how families name them, and what two checkpoints
say of each other (`fit`).
Does not belong here: what an engine makes of it (rules), what they cost (planning), torch.
Who may enter: dialects and every floor above; this room imports spec's floor and below only.
"""

from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.read import ModelProblem, facts_of, read_facts

__all__ = ["ModelFacts", "ModelProblem", "facts_of", "read_facts"]
