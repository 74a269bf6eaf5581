"""The method's name is not one of this engine and release.

Names are case-sensitive in vLLM and TensorRT-LLM; SGLang turns its algorithm into upper case first.

Bad:

    vllm: {"method": "EAGLE3", "model": "org/head", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}

Bad:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: DraftTarget, max_draft_len: 4, speculative_model: org/draft}

Good:

    trtllm@1.4.0rc0: speculative_config: {decoding_type: Draft_Target, max_draft_len: 4, speculative_model: org/draft}
"""
