"""What a checkpoint is, from its JSON files and safetensors headers; no weights are loaded.

Belongs here: facts of one checkpoint (sizes, family, heads) and how families name them.
Does not belong here: whether two checkpoints fit (rules), what they cost (planning), torch.
Who may enter: dialects and every floor above; this room imports spec's floor and below only.
"""

from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.read import ModelProblem, facts_of, read_facts

__all__ = ["ModelFacts", "ModelProblem", "facts_of", "read_facts"]
