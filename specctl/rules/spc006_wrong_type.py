"""A value has a type that the engine refuses.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3.5}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

Bad:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 8.0

Good:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 8
"""
