"""A name still works, but is deprecated.

Bad:

    vllm: {"method": "deepseek_mtp", "num_speculative_tokens": 1}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}
"""

SEVERITY = "warning"
