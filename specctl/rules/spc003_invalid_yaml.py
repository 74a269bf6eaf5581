# ruff: noqa: E501 (examples stand on one line)
"""The text is not YAML.

Most often a tab in the indentation, a lost quote, or a key that stands deeper than the block above allows.

Bad:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 3

Good:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 2, is_public_pool: false}
"""
