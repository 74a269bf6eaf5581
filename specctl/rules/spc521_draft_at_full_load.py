# ruff: noqa: E501 (examples stand on one line)
"""The server takes more requests at once than the draft is planned to pay for.

While few requests run, a step waits for weights to be read and verifying more rows is almost free; with many, the
arithmetic is the limit and rejected tokens cost what accepted ones do. The level is that of `specctl plan` with
conversations of 1024 tokens and the published acceptance; where none is published, only a draft that loses even if
everything is accepted is reported. `specctl bench --concurrency` measures it. Name the GPU with `--platform`.

target: {"model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088, "max_position_embeddings": 131072, "sliding_window": 128, "attention_bias": true, "num_local_experts": 32, "num_experts_per_tok": 4, "quantization_config": {"quant_method": "mxfp4"}}
args: {"max_num_seqs": 1024, "max_model_len": 8192}
platform: {"name": "h100"}

Bad:

    vllm: {"method": "eagle3", "model": "Dogacel/specdrift-gpt-oss-20b-eagle3", "num_speculative_tokens": 5}

Good:

    vllm: {"method": "eagle3", "model": "Dogacel/specdrift-gpt-oss-20b-eagle3", "num_speculative_tokens": 5, "num_speculative_tokens_per_batch_size": [[1, 128, 5], [129, 1024, 0]]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from specctl.dialects.reading import Finding, Reading
from specctl.rules.estimate import SEQUENCE_KEYS, estimate, given

if TYPE_CHECKING:
    from specctl.planning.plan import Plan

NEEDS = ("platform",)
SEVERITY = "advice"
TOKENS = 1024


def applies(reading: Reading) -> bool:
    """A limit of requests is given, nothing switches the draft off before it, and sizes and GPU are known."""
    spec = reading.spec
    if spec is None or spec.schedule or spec.max_concurrency or given(reading, *SEQUENCE_KEYS) is None:
        return False
    return estimate(reading) is not None


def check(reading: Reading) -> Iterator[Finding]:
    """The largest level that pays against the limit."""
    plan, limit = estimate(reading), given(reading, *SEQUENCE_KEYS)
    if plan is None or limit is None or plan.problem is not None or plan.k is None:
        return
    level = _pays_up_to(plan, limit)
    if level is None or level >= limit:
        return
    yield Finding(
        "SPC521",
        f"on {plan.request.gpu.title} this draft is planned to pay up to {level} requests at once; the server takes {limit}",
        reading.route("num_speculative_tokens"),
        help=_cure(reading.engine, level, limit, plan.k),
        notes=(
            f"conversations of {min(TOKENS, plan.request.context)} tokens, k = {plan.k}, acceptance: "
            f"{plan.acceptance.source}",
        ),
    )


def _pays_up_to(plan: Plan, limit: int) -> int | None:
    """The largest power of two, or the limit, at which the draft pays; None where that cannot be told."""
    from dataclasses import replace

    levels = [1 << power for power in range(limit.bit_length()) if 1 << power < limit] + [limit]
    request = replace(plan.request, context=min(TOKENS, plan.request.context), concurrency=tuple(levels))
    again = type(plan)(request)
    if again.acceptance.known:
        return max((each.concurrency for each in again.curve if each.pays), default=0)
    lost = [each.concurrency for each in again.curve if (each.break_even or 0) > (plan.k or 0) + 1]
    return max((level for level in levels if level < min(lost)), default=0) if lost else None


def _cure(engine: str, level: int, limit: int, k: int) -> str:
    if level == 0:
        return "measure it with specctl bench, or leave speculation off"
    if engine == "vllm":
        return f'set "num_speculative_tokens_per_batch_size": [[1, {level}, {k}], [{level + 1}, {limit}, 0]]'
    if engine == "trtllm":
        return f"set max_concurrency: {level} in speculative_config"
    return f"limit the server to {level} requests, or measure it with specctl bench"
