# ruff: noqa: E501 (examples stand on one line)
"""The engine replaces a value by another one without saying so.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4, "num_speculative_tokens_per_batch_size": [[1, 4, 9]]}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4, "num_speculative_tokens_per_batch_size": [[1, 4, 3]]}

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8

Good:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
"""

SEVERITY = "warning"
