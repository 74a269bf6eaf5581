"""The engine takes another method than the one written, because of the draft's path or type.

vLLM looks for `eagle-`, `eagle3`, `dflash` and `dspark` in the whole lower-cased path of the draft and lets that win
over an explicit `draft_model`, `medusa` or `mtp`.

Bad:

    vllm: {"method": "draft_model", "model": "org/my-eagle-draft", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "draft_model", "model": "org/small-lm", "num_speculative_tokens": 3}
"""

SEVERITY = "warning"
