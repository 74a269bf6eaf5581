"""Loading for `specctl serve`: target, engine, threads, and what the memory holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specctl.errors import SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.runtime import Engine, Target
    from specctl.runtime.memory import MemoryPlan
    from specctl.spec import SpecDecodeConfig

# A larger model keeps all threads busy, and a trial of it would take minutes.
TRIAL_BYTES = 2 * 2**30
TRIAL_LEVEL = 4
TRIAL_PROMPT = 24
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


@dataclass(frozen=True)
class LoadOptions:
    """The options of the command that loading needs, as typed."""

    device: str
    dtype: str
    threads: int | None
    max_num_seqs: int
    max_model_len: int | None
    max_num_batched_tokens: int
    prefix_caching: bool
    kv_cache_memory: str | None
    gpu_memory_utilization: float
    coupled: bool
    measured_length: bool = False
    draft_check: bool = True


@dataclass(frozen=True)
class Loaded:
    """`notes`: what the user should know about how it was loaded."""

    target: Target
    engine: Engine
    plan: MemoryPlan
    notes: tuple[str, ...]


def read_size(given: str) -> int:
    """Bytes of `4GiB`, `500M`, `4294967296`; units are powers of 1024. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", given.strip().lower())
    if found is None or float(found[1]) == 0:
        raise UsageError(f"--kv-cache-memory is {given!r}; it must be a size like 4GiB, 500MiB or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2]])


def load(name: str, spec: SpecDecodeConfig | None, options: LoadOptions) -> Loaded:
    """Load everything. Raises SpecctlError and its kin where something does not fit."""
    from specctl.runtime import EngineOptions, load_target, make_engine, set_threads

    wanted = None if options.kv_cache_memory is None else read_size(options.kv_cache_memory)
    if options.threads is not None:
        set_threads(options.threads)
    target = load_target(name, device=options.device, dtype=options.dtype)
    if options.max_model_len is not None and options.max_model_len > target.max_model_len:
        raise SpecctlError(
            f"--max-model-len is {options.max_model_len}; {name} was made for {target.max_model_len} tokens",
            help="leave it out to use them all",
        )
    notes = _choose_threads(target, options) if options.threads is None else ()
    slots, more = _slots(target, options, wanted)
    made = EngineOptions(
        slots,
        options.max_model_len,
        options.max_num_batched_tokens,
        coupled=options.coupled,
        prefix_caching=options.prefix_caching,
        measured_length=options.measured_length,
        draft_check=options.draft_check,
    )
    engine = make_engine(target, spec, made)
    return Loaded(target, engine, _fit(target, engine, options, wanted), (*notes, *more))


def _slots(target: Target, options: LoadOptions, wanted: int | None) -> tuple[int, tuple[str, ...]]:
    """Sequences at once: on a GPU, where slots are allocated in full, not more than fit."""
    if not target.device.startswith("cuda"):
        return options.max_num_seqs, ()
    from specctl.runtime.memory import free_memory, kv_bytes_per_token

    budget = wanted or free_memory(target.model.device, options.gpu_memory_utilization)
    length = options.max_model_len or target.max_model_len
    fitting = budget // (length * kv_bytes_per_token(target.model))
    if fitting < 1:
        most = budget // kv_bytes_per_token(target.model)
        raise SpecctlError(
            f"{budget} bytes hold {most} tokens; one conversation of --max-model-len {length} does not fit",
            help=f"lower --max-model-len to {most}, or raise --gpu-memory-utilization or --kv-cache-memory",
        )
    if fitting >= options.max_num_seqs:
        return options.max_num_seqs, ()
    return fitting, (f"{fitting} of --max-num-seqs {options.max_num_seqs}: the KV cache holds no more at full length",)


def _fit(target: Target, engine: Engine, options: LoadOptions, wanted: int | None) -> MemoryPlan:
    """Limit the caches to the memory that there is. Raises SpecctlError where one conversation does not fit."""
    from specctl.runtime.memory import draft_kv_per_token, free_memory, kv_bytes_per_token, plan_memory

    per_token = kv_bytes_per_token(target.model) + draft_kv_per_token(engine)
    if wanted is not None:
        budget = wanted
    elif target.device.startswith("cuda"):  # the caches have their memory by now
        budget = engine.kv_cache_tokens * per_token
    else:
        budget = free_memory(target.model.device, options.gpu_memory_utilization)
    try:
        engine.limit_kv_cache(max(1, budget // per_token))
    except SpecctlError as error:
        most = budget // per_token
        raise SpecctlError(
            f"{error.message} ({budget} bytes at {per_token} bytes a token)",
            help=f"lower --max-model-len to {most}, or raise --kv-cache-memory",
        ) from None
    return plan_memory(target, engine, budget)


def _choose_threads(target: Target, options: LoadOptions) -> tuple[str, ...]:
    """As bench does: the count with which plain decoding takes the least time in a short trial."""
    from specctl.bench.load import EngineRunner
    from specctl.bench.prompt_rows import Prompt
    from specctl.bench.records import Job
    from specctl.bench.threads import TRIAL_TOKENS, fastest, thread_counts
    from specctl.runtime import Engine, EngineOptions, SamplingParams, environment, set_threads
    from specctl.runtime.footprint import tensor_bytes

    most = environment(target)["threads"]
    if most == 1 or target.device != "cpu" or tensor_bytes(target.model) > TRIAL_BYTES:
        return ()
    level = min(TRIAL_LEVEL, options.max_num_seqs)
    tokens = min(TRIAL_TOKENS, target.max_model_len - 2)
    prompt = [place % target.vocab_size for place in range(min(TRIAL_PROMPT, target.max_model_len - tokens - 1))]
    engine = Engine(target, None, EngineOptions(level, len(prompt) + tokens + 1))
    sampling = SamplingParams(max_tokens=tokens, ignore_eos=True)
    jobs = [Job(i, 0, Prompt(f"{i}", "trial", (), tuple(prompt)), sampling) for i in range(level)]
    chosen = fastest(EngineRunner("trial", None, None, engine), jobs, level, thread_counts(most), set_threads)
    if chosen == most:
        return ()
    return (f"{chosen} of {most} CPU threads, the fastest in a short trial; --threads sets it",)


def memory_lines(plan: MemoryPlan, max_num_seqs: int) -> list[str]:
    """What the start says about memory."""
    per_token = plan.kv_per_token + plan.draft_kv_per_token
    of_draft = f", {plan.draft_kv_per_token:,} of them the draft's" if plan.draft_kv_per_token else ""
    lines = [f"weights      {_size(plan.weights)}"]
    if plan.draft_weights:
        lines.append(f"draft        {_size(plan.draft_weights)} of weights")
    size = _size(plan.kv_tokens * per_token)
    lines.append(f"KV cache     {plan.kv_tokens:,} tokens, {size} ({per_token:,} bytes a token{of_draft})")
    fits = f"{_size(plan.budget)} would hold {plan.conversations:,} conversations of {plan.max_model_len:,} tokens"
    lines.append(f"             {fits}; {max_num_seqs} run at once")
    if plan.draft_weights or plan.draft_kv_per_token:
        lines.append(f"             the draft's weights and cache displace {plan.displaced:,} more")
    return lines


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
