"""The setting is not an object with keys.

Bad:

    vllm: ["ngram"]

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""
