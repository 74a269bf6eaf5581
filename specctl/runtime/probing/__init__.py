"""Door sign: what may be wrong with a draft, found by trying it.

Here: the text that a draft is taught by, how well it follows the target there as it is and with one thing changed, and
what is concluded: in short when an engine is made (`check`), at length for `inspect --probe` (`probe`). Not here: what
acceptance is too low by itself (`planning.alarm`). May enter: `runtime.build`, and the commands.
"""
