"""Tiny random checkpoints of every native architecture, with a byte tokenizer, and running an engine to its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from specctl.runtime import Engine, EngineOptions, Request, SamplingParams
from specctl.runtime.integrity import cache_faults

EOS = 256
VOCAB = 258
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "bos_token_id": None,
    "eos_token_id": EOS,
    "initializer_range": 0.4,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 24, "rope_theta": 10000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 10000.0,
}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}

FAMILIES: dict[str, Callable[[], Any]] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "llama-tied-biased": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, tie_word_embeddings=True, attention_bias=True, mlp_bias=True)
    ),
    "llama-mha-wide-heads": lambda: LlamaForCausalLM(LlamaConfig(**SIZES | {"num_key_value_heads": 4, "head_dim": 16})),
    "llama-llama3-rope": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=LLAMA3)),
    "llama-yarn-rope": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=YARN)),
    "llama-linear-rope": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=LINEAR)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    "qwen2-window": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=7, max_window_layers=1)
    ),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES | {"head_dim": 12})),
    "mistral-window": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=9)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None)),
}


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, the byte's value its id, so that characters of two to four bytes are split over tokens."""
    # The byte-level alphabet keeps printable bytes and gives the others the code points from 256 on.
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    moved = iter(range(256, 512))
    vocab = {chr(byte if byte in printable else next(moved)): byte for byte in range(256)}
    vocab |= {"<eos>": EOS, "<pad>": EOS + 1}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>")


def save(model: Any, folder: Path) -> Path:
    """Write a checkpoint with its tokenizer."""
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def build(family: str, folder: Path, seed: int = 0) -> Path:
    """A random checkpoint of ``family``; biases and norms too are random, so that leaving one out shows."""
    torch.manual_seed(seed)
    model = FAMILIES[family]()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith(".bias"):
                value.normal_(0, 0.3)
            elif "norm" in name:
                value.uniform_(0.6, 1.4)
    return save(model, folder)


def run(engine: Engine, requests: list[Request], failures: int = 0, sound: bool = True) -> dict[str, dict[str, Any]]:
    """Run requests to their end: token ids, text, reasons and statistics of each; the proposer may fail so often.

    ``sound``: the target's cache may not have had a stale row.
    """
    for request in requests:
        engine.add(request)
    results: dict[str, dict[str, Any]] = {r.id: {"tokens": [], "text": "", "logprobs": []} for r in requests}
    for _ in range(10_000):
        if not engine.has_work():
            assert engine.counters.proposer_failures == failures, "the proposer threw; the log says what"
            # Drafts that a test replaces stand in the draft's cache as it drafted them: only the target's counts.
            assert not sound or not any("the target's cache" in fault for fault in cache_faults(engine))
            return results
        for emission in engine.step():
            result = results[emission.request_id]
            result["tokens"] += emission.token_ids
            result["text"] += emission.text
            result["logprobs"] += emission.logprobs or []
            if emission.finish_reason:
                result |= {"finish": emission.finish_reason, "why": emission.stop_reason, "stats": emission.stats}
    raise AssertionError(f"the engine does not come to an end: {json.dumps(results, default=str)[:500]}")


def ask(name: str, prompt: list[int], **sampling: Any) -> Request:
    """A request in short."""
    return Request(name, prompt, SamplingParams(**{"max_tokens": 24, **sampling}))


OPTIONS = EngineOptions(max_num_seqs=4, max_num_batched_tokens=16)
