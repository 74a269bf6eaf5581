"""What looks like a setting of speculation is given to another flag, where it has no effect.

Bad:

    vllm: --additional-config {"method":"ngram","num_speculative_tokens":3}

Good:

    vllm: --speculative-config {"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":2,"prompt_lookup_max":4}
"""

SEVERITY = "warning"
