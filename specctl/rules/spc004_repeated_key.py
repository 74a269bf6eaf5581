"""A key or flag is given more than once.

All engines take the last one and say nothing about the first.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "num_speculative_tokens": 5}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

SEVERITY = "warning"
