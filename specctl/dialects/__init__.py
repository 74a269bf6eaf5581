"""How each engine spells speculation: one file an engine, one row a key.

Belongs here: rows (`Field`), readers and writers made from them, what an engine fills in or overwrites by itself,
conversion, the names of an engine's counters. Does not belong here: judgement (rules), places in text (source),
starting of processes (launch). Who may enter: rules and every floor above; this room imports spec, modelinfo, source
and diagnostics."""
