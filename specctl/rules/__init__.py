"""What fails, misbehaves or wastes: one file a rule, `spcNNN_name.py`.

First line of the policy: specctl reports what would fail, misbehave or waste; it has no opinions on style. Belongs
here: judgement, with the page that `specctl explain` prints and the examples that test it in the rule's own
docstring. Does not belong here: file formats (source), spellings (dialects); no rule names a file format. Who may
enter: cli, bench, server and presets; this room imports dialects, modelinfo, planning, spec, source and diagnostics.

Families: SPC0xx reading, 1xx the method alone, 2xx against the model, 3xx against the release and its surroundings,
4xx lost in conversion, 5xx advice. Codes 0xx are raised by source and dialects, 4xx by conversion; their files hold
the page."""
