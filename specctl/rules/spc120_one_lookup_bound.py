"""Only one bound of the looked-up suffix is given; vLLM uses it for both.

So only suffixes of exactly this length are looked up, not "up to" it.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

SEVERITY = "warning"
