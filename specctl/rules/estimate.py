"""The plan behind a setting, for the rules that ask about memory and load.

There is one where the GPU is named (`--platform`), and the sizes of target and draft are known: from their folders, or
from planning's tables. It is made once for a reading and kept in its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specctl.dialects.reading import Reading
from specctl.errors import SpecctlError

if TYPE_CHECKING:
    from specctl.planning.plan import Plan

CONTEXT = 8192  # tokens of a conversation where the setting does not limit them
VLLM_UTILIZATION = 0.92  # of vLLM 0.31
LENGTH_KEYS = ("max_model_len", "context_length", "max_seq_len")
SEQUENCE_KEYS = ("max_num_seqs", "max_running_requests", "max_batch_size")
PARALLEL_KEYS = ("tensor_parallel_size", "tp_size")


def given(reading: Reading, *keys: str) -> int | None:
    """The first of the engine's other arguments that holds a whole number above 0."""
    for key in keys:
        found = reading.around.args.get(key)
        text = found if isinstance(found, str) and found.isdecimal() else None
        if isinstance(found, int) and not isinstance(found, bool) and found > 0:
            return found
        if text is not None and int(text) > 0:
            return int(text)
    return None


def share(reading: Reading, key: str) -> float | None:
    """One of the engine's other arguments as a share above 0 and up to 1."""
    found = reading.around.args.get(key)
    try:
        value = float(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else 0.0
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


def estimate(reading: Reading) -> Plan | None:
    """The plan of a reading, or None where too little is known."""
    if reading.around.platform is None or reading.off or reading.spec is None or reading.around.target is None:
        return None
    if "plan" not in reading.notes:
        try:
            reading.notes["plan"] = _made(reading)
        except (SpecctlError, ArithmeticError, ValueError, TypeError):  # a config of odd sizes is not judged here
            reading.notes["plan"] = None
    found: Plan | None = reading.notes["plan"]
    return found


def _made(reading: Reading) -> Plan | None:
    from specctl.planning.hardware import find_gpu
    from specctl.planning.models import draft_named, find_target
    from specctl.planning.plan import Plan, Request

    spec, args = reading.spec, reading.around.args
    gpu, target = find_gpu(reading.around.platform or ""), find_target(reading.around.target or "")
    if gpu is None or target is None or spec is None:
        return None
    method = spec.method.name
    name = spec.model or {"mtp": "mtp", "ngram": "ngram", "suffix": "suffix"}.get(method)
    if name is None:
        return None
    tp = given(reading, *PARALLEL_KEYS) or 1
    length = given(reading, *LENGTH_KEYS) or min(CONTEXT, target.facts.max_positions or CONTEXT)
    request = Request(
        target=target,
        gpu=gpu,
        context=min(length, target.facts.max_positions or length),
        draft=draft_named(name, target, method),
        tp=tp,
        draft_tp=_draft_tp(reading, tp),
        quantization=_known(args.get("quantization")),
        kv_dtype=_known_cache(_cache_dtype(args)),
        utilization=_utilization(reading),
        k=spec.num_speculative_tokens,
    )
    plan = Plan(request)
    assert plan.problem is not None or plan.curve  # worked out here, where odd sizes are caught
    return plan


def _utilization(reading: Reading) -> float:
    """vLLM stays inside a share of the memory; the others count from what is free after loading."""
    return (share(reading, "gpu_memory_utilization") or VLLM_UTILIZATION) if reading.engine == "vllm" else 1.0


def _cache_dtype(args: dict[str, Any]) -> Any:
    inner = args.get("kv_cache_config")
    return inner.get("dtype") if isinstance(inner, dict) else args.get("kv_cache_dtype")


def _draft_tp(reading: Reading, tp: int) -> int:
    size = reading.spec.draft.tensor_parallel_size if reading.spec else None
    return 1 if size == 1 else tp


def _known(name: Any) -> str | None:
    from specctl.planning.precision import QUANTIZATIONS

    return name if isinstance(name, str) and name.lower() in QUANTIZATIONS else None


def _known_cache(name: Any) -> str | None:
    from specctl.planning.precision import KV_DTYPES

    return name if isinstance(name, str) and name.lower() in KV_DTYPES else None


def table(plan: Plan) -> tuple[str, ...]:
    """The sums on the fullest GPU, one line each."""
    from specctl.planning.memory import gib

    memory = plan.memory
    lines = [
        f"{memory.gpu.title}: {memory.gpu.reported_gib:.2f} GiB",
        f"target's weights: {gib(memory.weights_here)}",
        f"draft's weights: {gib(memory.draft_here)}",
        f"KV cache of one conversation of {plan.request.context} tokens: {gib(memory.conversation.per_gpu)}, "
        f"the draft's {gib(memory.draft_conversation.per_gpu)}",
        f"runtime, activations, graphs: {gib(memory.reserve)} assumed",
    ]
    return tuple(lines)
