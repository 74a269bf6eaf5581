# ruff: noqa: E501 (examples stand on one line)
"""A key is not one of this engine and release.

vLLM and TensorRT-LLM refuse unknown keys. The help names the key that was most likely meant: a typo, an older name,
another engine's name, or the release that has it.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokrns": 3, "num_speculative_tokens": 3}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: NGram, max_draft_len: 3, prompt_lookup_max: 2}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 2, is_public_pool: false}
"""
