"""Trains draft heads on what a target itself says: one recipe a method, all on the same recording.

Belongs here: the recipes and the training forwards, whose parameters carry the names of the published layouts. What
does not: anything that specctl runs.
"""
