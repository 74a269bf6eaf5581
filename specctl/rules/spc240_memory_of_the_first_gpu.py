# ruff: noqa: E501 (examples stand on one line)
"""Target, draft and one conversation do not fit into the memory that the engine may use, or the draft fills one GPU
alone.

A draft that is not split lies on the first GPU whole, with its cache: there the room ends first. The sums are those of
`specctl plan`; name the GPU with `--platform`.

target: {"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}
platform: {"name": "h100"}

Bad:

    vllm: {"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", "num_speculative_tokens": 3}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from specctl.dialects.reading import Finding, Reading
from specctl.rules.estimate import estimate, table

if TYPE_CHECKING:
    from specctl.planning.plan import Plan

ENGINES = ("vllm", "trtllm")
NEEDS = ("platform",)
SEVERITY = "warning"
MUCH = 0.1  # of the room for conversations


def applies(reading: Reading) -> bool:
    """Where sizes and GPU are known."""
    return estimate(reading) is not None


def check(reading: Reading) -> Iterator[Finding]:
    """What does not fit; else a draft that takes much of one GPU alone."""
    plan = estimate(reading)
    if plan is None:
        return
    if plan.problem is not None:
        yield Finding(
            "SPC240", plan.problem[0], reading.route("model"), help=_cure(plan, reading.engine), notes=table(plan)
        )
        return
    memory = plan.memory
    if memory.draft_tp < memory.tp and memory.draft_here > MUCH * memory.room:
        from specctl.planning.memory import gib

        whole = memory.weights_here + memory.draft_here
        yield Finding(
            "SPC240",
            f"the first of {memory.tp} GPUs holds the whole draft: {gib(memory.weights_here)} of the target and "
            f"{gib(memory.draft_here)} of the draft, {gib(whole)} in all, and the draft's cache",
            reading.route("draft_tensor_parallel_size"),
            help=f"split the draft over the {memory.tp} GPUs, or count with {memory.conversations_with_draft} "
            f"conversations of {plan.request.context} tokens instead of {memory.conversations}",
            notes=table(plan),
        )


def _cure(plan: Plan, engine: str) -> str:
    """The engine's own option where more of the same GPU would do, else what planning found."""
    needed = plan.memory.smallest_utilization()
    if engine == "vllm" and plan.request.utilization < needed <= 0.98:
        return f"raise gpu_memory_utilization to {needed + 0.005:.2f} at least"
    assert plan.problem is not None
    length = "max_model_len" if engine == "vllm" else "max_seq_len"
    words = {"--tp": "tensor_parallel_size", "--context": length, "--kv-dtype": "a KV cache in", "--quantization": ""}
    cure = plan.problem[1]
    for word, own in words.items():
        cure = cure.replace(f"{word} ", f"{own} ".lstrip())
    return cure
