"""Door sign: networks that draft from a target's hidden states, one file a checkpoint layout.

Here: reading those checkpoints and the forward of the head. Not here: when a row is fed and what is done with its
logits (the proposers). May enter: the proposers of `specctl.runtime`.
"""
