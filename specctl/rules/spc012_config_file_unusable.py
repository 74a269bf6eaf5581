# ruff: noqa: E501 (examples stand on one line)
"""The file that a flag names does not exist or has the wrong ending.

Bad:

    vllm: --config settings.json

Good:

    vllm: --spec-method ngram --spec-tokens 3 --speculative-config.prompt_lookup_min 2 --speculative-config.prompt_lookup_max 4
"""
