# ruff: noqa: E501 (examples stand on one line)
"""The same setting is given in two ways that exclude each other.

Bad:

    vllm: --spec-method ngram --speculative-config {"method":"ngram","num_speculative_tokens":3}

Good:

    vllm: --spec-method ngram --speculative-config {"num_speculative_tokens":3,"prompt_lookup_min":2,"prompt_lookup_max":4}
"""
