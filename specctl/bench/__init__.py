"""What a draft is worth, measured: prompts in, timed runs out, compared with plain decoding.

Belongs here: workloads, load at fixed concurrency, counters and times, paired comparison, the printed report; `peers/`
times other runtimes on the same weights.
Does not belong here: how a setting is read (source), how tokens are made (runtime), how engines are started (launch).
Who may enter: `cli` alone. This room enters runtime and what lies below, and loads torch only inside functions.
"""
