# ruff: noqa: E501 (examples stand on one line)
"""The setting is there, but it leaves speculation off.

Bad:

    vllm: --speculative-config null

Good:

    vllm: --spec-method ngram --spec-tokens 3 --speculative-config.prompt_lookup_min 2 --speculative-config.prompt_lookup_max 4
"""

SEVERITY = "warning"
