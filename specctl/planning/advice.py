"""What a plan says in words: why something cannot run and the cure, and the assumptions behind the figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from specctl.planning.memory import gib
from specctl.planning.models import other_target
from specctl.planning.roofline import (
    ARITHMETIC_SHARE,
    BANDWIDTH_SHARE,
    SECONDS_A_DRAFT_FORWARD,
    SECONDS_A_VERIFY_STEP,
)

if TYPE_CHECKING:
    from specctl.planning.plan import Plan


def impossible(plan: Plan) -> tuple[str, str] | None:
    """The first thing that does not fit, and cures that were tried and found to work."""
    memory, asked = plan.memory, plan.request
    title = asked.gpu.title if asked.tp == 1 else f"{asked.tp} x {asked.gpu.title}"
    talk = f"one conversation of {asked.context} tokens"
    if memory.room < 0:
        rule = f"{asked.utilization:g} x {asked.gpu.reported_gib:.2f} GiB - {asked.reserve_gib:g} GiB reserve"
        there = gib(max(memory.budget - memory.reserve, 0))
        message = (
            f"the weights do not fit on {title}: {gib(memory.weights_here)} on each GPU, {there} are there ({rule})"
        )
    elif memory.conversations == 0:
        takes = gib(memory.conversation.per_gpu)
        message = f"not {talk} fits on {title}: it takes {takes}, {gib(memory.room)} are left beside the weights"
    elif not memory.draft or memory.conversations_with_draft > 0:
        return None
    elif memory.room_with_draft < 0:
        left = f"{gib(memory.room)} are left beside the target's weights"
        message = f"the draft's weights do not fit on {title}: {gib(memory.draft_here)} on one GPU, {left}"
    else:
        takes = gib(memory.conversation.per_gpu + memory.draft_conversation.per_gpu)
        left = f"{gib(memory.room_with_draft)} are left beside both weights"
        message = f"with the draft not {talk} fits on {title}: it takes {takes}, {left}"
    cures = list(_cures(plan))
    return message, "use " + " or ".join(cures) if cures else "use a GPU with more memory"


def _cures(plan: Plan) -> Iterator[str]:
    """Changes of the request with which everything fits."""
    asked, heads = plan.request, plan.request.target.facts.num_heads or 0
    sizes = [size for size in (asked.tp << step for step in range(1, 7)) if not heads % size]
    yield from islice((f"--tp {size}" for size in sizes if _fits(plan, tp=size)), 1)
    eight = plan.precision.size(plan.shape.parts) > plan.shape.parts.total * 1.1
    if eight and _fits(plan, quantization="fp8"):
        yield "--quantization fp8"
    if plan.kv[0] > 8 and _fits(plan, kv_dtype="fp8"):
        yield "--kv-dtype fp8"
    lengths = [asked.context >> step for step in range(1, 12) if asked.context >> step >= 256]
    yield from islice((f"--context {length}" for length in lengths if _fits(plan, context=length)), 1)
    if asked.draft is not None and _fits(plan, draft=None):
        yield "a smaller draft"


def _fits(plan: Plan, **changes: Any) -> bool:
    request = replace(plan.request, **changes)
    if request.draft_tp not in (None, 1):
        request = replace(request, draft_tp=request.tp)
    memory = type(plan)(request).memory
    return memory.conversations > 0 and (not memory.draft or memory.conversations_with_draft > 0)


def assumptions(plan: Plan) -> tuple[str, ...]:
    """Everything the figures hang on, one sentence each."""
    return tuple(_about_memory(plan)) + tuple(_about_speed(plan))


def _about_memory(plan: Plan) -> Iterator[str]:
    asked, memory = plan.request, plan.memory
    yield (
        f"memory rule of specctl: {asked.utilization:g} of the reported {asked.gpu.reported_gib:.2f} GiB, minus "
        f"weights, minus {asked.reserve_gib:g} GiB a GPU for runtime, activations and graphs "
        "(--gpu-memory-utilization, --reserve-gib)"
    )
    if asked.gpu.assumed:
        yield f"{asked.gpu.title}: {asked.gpu.assumed}"
    if asked.target.doubt:
        yield f"{asked.target.name}: {asked.target.doubt}"
    if asked.target.stored_bytes is not None and asked.quantization is None and asked.dtype in (None, "auto"):
        yield "weights as they are stored on disk"
    elif plan.precision.note:
        yield f"weights: {plan.precision.note}"
    yield f"KV cache in {plan.kv[1]}" + ("; the draft's too" if memory.draft and asked.draft else "")
    windows = sorted({piece.window for piece in plan.shape.cache if piece.window})
    if windows:
        yield f"layers with a window of {', '.join(map(str, windows))} tokens keep no more than that"
    if any(piece.heads == 1 for piece in plan.shape.cache) and asked.tp > 1:
        yield "each GPU holds the whole latent cache"
    if plan.shape.state:
        yield f"recurrent state of {gib(memory.conversation.total - _cached(plan))} a conversation, whatever its length"
    if plan.shape.state and memory.draft:
        yield f"engines keep one more recurrent state for each of the {plan.k} drafted tokens"


def _cached(plan: Plan) -> float:
    return plan.shape.cached(plan.request.context) * plan.kv[0] / 8


def _about_speed(plan: Plan) -> Iterator[str]:
    asked, draft = plan.request, plan.request.draft
    yield "single-stream ceiling: peak bandwidth over the weights one token reads, cache and launches left out"
    yield (
        f"curve: {BANDWIDTH_SHARE:g} of the bandwidth plus {ARITHMETIC_SHARE:g} of the arithmetic plus launches; every "
        f"conversation holds all {asked.context} tokens"
    )
    if asked.gpu.half is None:
        yield f"the arithmetic of {asked.gpu.title} is not known: the curve counts reading alone, too kind to drafts"
    if plan.shape.experts:
        yield (
            f"experts: {plan.shape.experts_per_token} of {plan.shape.experts} a token; more are read as rows grow, a "
            "drafted row counting half"
        )
    if draft is None:
        return
    yield (
        f"a step with a draft costs {SECONDS_A_VERIFY_STEP * 1e3:g} ms more and {SECONDS_A_DRAFT_FORWARD * 1e3:g} ms a "
        "draft forward (fitted on published runs)"
    )
    yield from (f"draft: {note}" for note in draft.shape.notes)
    other = other_target(draft, asked.target)
    if other is not None:
        yield f"the draft was made for {other}; with {asked.target.name} it may not load, or little is accepted"
    if plan.acceptance.known:
        yield f"acceptance: {plan.acceptance.source}; other k by a chance that falls 3 % a place"
        yield f"best k looked for from 1 to {plan.counts[-1]}"
    else:
        yield "acceptance is not known; give --acceptance-length or --acceptance-rate, as `specctl bench` measures them"
    full = plan.memory.conversations_with_draft
    if any(level > full for level in asked.concurrency):
        yield f"above {full} conversations the rest waits: memory is full with the draft"
