"""Keys and flags of one engine met in another's setting: whose they are, and what stands in their place here."""

from __future__ import annotations

from typing import Any

# canonical meaning -> its name in each engine
_NAMES: dict[str, dict[str, str]] = {
    "k": {
        "vllm": "num_speculative_tokens",
        "trtllm": "max_draft_len",
        "sglang": "speculative_num_steps",
        "specctl": "num_speculative_tokens",
    },
    "width": {"sglang": "speculative_num_draft_tokens"},
    "topk": {"sglang": "speculative_eagle_topk", "trtllm": "dynamic_tree_max_topK"},
    "method": {"vllm": "method", "trtllm": "decoding_type", "sglang": "speculative_algorithm", "specctl": "method"},
    "model": {
        "vllm": "model",
        "trtllm": "speculative_model",
        "sglang": "speculative_draft_model_path",
        "specctl": "model",
    },
    "ngram_max": {"vllm": "prompt_lookup_max", "trtllm": "max_matching_ngram_size", "specctl": "prompt_lookup_max"},
    "draft_tp": {"vllm": "draft_tensor_parallel_size"},
    "schedule": {
        "vllm": "num_speculative_tokens_per_batch_size",
        "trtllm": "draft_len_schedule",
        "specctl": "schedule",
    },
    "probabilistic": {
        "vllm": "draft_sample_method",
        "trtllm": "use_rejection_sampling",
        "sglang": "speculative_use_rejection_sampling",
        "specctl": "draft_sample_method",
    },
}
_ALIASES: dict[str, tuple[str, str]] = {
    "num_draft_tokens": ("sglang", "width"),
    "speculative_num_draft_tokens": ("sglang", "width"),
    "num_steps": ("sglang", "k"),
    "speculative_num_steps": ("sglang", "k"),
    "eagle_topk": ("sglang", "topk"),
    "speculative_eagle_topk": ("sglang", "topk"),
    "speculative_algorithm": ("sglang", "method"),
    "speculative_draft_model_path": ("sglang", "model"),
    "speculative_draft_model": ("sglang", "model"),
    "max_draft_len": ("trtllm", "k"),
    "decoding_type": ("trtllm", "method"),
    "speculative_model": ("trtllm", "model"),
    "speculative_model_dir": ("trtllm", "model"),
    "pytorch_weights_path": ("trtllm", "model"),
    "max_matching_ngram_size": ("trtllm", "ngram_max"),
    "draft_len_schedule": ("trtllm", "schedule"),
    "num_nextn_predict_layers": ("trtllm", "k"),
    "num_speculative_tokens": ("vllm", "k"),
    "method": ("vllm", "method"),
    "model": ("vllm", "model"),
    "draft_model": ("vllm", "model"),
    "prompt_lookup_max": ("vllm", "ngram_max"),
    "draft_tensor_parallel_size": ("vllm", "draft_tp"),
    "num_speculative_tokens_per_batch_size": ("vllm", "schedule"),
    "draft_sample_method": ("vllm", "probabilistic"),
    "use_rejection_sampling": ("trtllm", "probabilistic"),
}
_TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "specctl": "specctl"}
_SAMPLING = frozenset({"temperature", "top_p", "top_k", "min_p", "max_tokens", "seed", "repetition_penalty"})


def title(engine: str) -> str:
    """The engine's name as its makers write it."""
    return _TITLES.get(engine, engine)


def explain_key(key: str, raw: Any, engine: str) -> str | None:
    """What a key that `engine` does not know is elsewhere, and what to write here; None where nobody has it."""
    name = key.lstrip("-").replace("-", "_")
    if name in _SAMPLING:
        return f"{key} is a sampling option; it belongs into the request, not here"
    if name not in _ALIASES or _ALIASES[name][0] == engine:
        return None
    owner, meaning = _ALIASES[name]
    here = _NAMES[meaning if meaning != "width" else "k"].get(engine)
    if here is None:
        return f"{key} is {title(owner)}'s; {title(engine)} has no counterpart, leave it out"
    if meaning == "width" and isinstance(raw, int) and raw > 1:
        return f"{key} is {title(owner)}'s and counts the root; {title(engine)}'s is {here}, here {raw} - 1 = {raw - 1}"
    return f"{key} is {title(owner)}'s; {title(engine)}'s is {here}"
