# ruff: noqa: E501 (examples stand on one line)
"""A command line or config file has a flag that this engine does not know.

Bad:

    vllm: --num-speculative-tokens 3

Good:

    vllm: --spec-method ngram --spec-tokens 3 --speculative-config.prompt_lookup_min 2 --speculative-config.prompt_lookup_max 4

Bad:

    sglang: --speculative_algorithm NGRAM

Good:

    sglang: --speculative-algorithm NGRAM
"""
