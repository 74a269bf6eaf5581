"""A model name without a slash and with dots is read as the import path of a Python class.

Bad:

    vllm: {"model": "draft.v2", "num_speculative_tokens": 3}

Good:

    vllm: {"model": "org/draft.v2", "num_speculative_tokens": 3}
"""

SEVERITY = "warning"
