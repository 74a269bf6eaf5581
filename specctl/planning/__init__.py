"""Bytes and seconds by arithmetic: what a model and its draft cost, and at which load a draft stops paying.

Belongs here: GPUs and their figures, the sizes of known models, memory of weights and caches, the roofline, models of
acceptance, and the plan that joins them; nothing is loaded or run. Does not belong here: reading settings (dialects),
judging them (rules), measuring (bench). Who may enter: rules and every floor above; this room imports modelinfo,
spec and the ground floor only."""
