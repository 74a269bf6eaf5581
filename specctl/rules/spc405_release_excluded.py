"""The setting says for which engines and releases it was made, and this is none of them.

A file of specctl's own may say `engines: {vllm: ">=0.31", trtllm: ">=1.4.0rc0"}`. A release outside of the range is an
error: a head, a model family or a key is known not to work there. An engine that is not named is a warning: nobody has
said that it works.

Bad:

    vllm: {"specctl": 1, "method": "ngram", "num_speculative_tokens": 4, "engines": {"vllm": ">=0.32"}}

Good:

    vllm: {"specctl": 1, "method": "ngram", "num_speculative_tokens": 4, "engines": {"vllm": ">=0.31"}}
"""
