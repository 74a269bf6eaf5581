"""The engine reads the value as another type than the one written.

vLLM and TensorRT-LLM take "3" and 3.0 for 3, and true for 1. It works, but only by accident.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": "3"}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

SEVERITY = "warning"
