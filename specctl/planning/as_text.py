"""A plan as text for a terminal. Every figure has its unit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from specctl.planning.memory import gib
from specctl.planning.models import other_target
from specctl.planning.plan import Plan, Point


def render(plan: Plan) -> str:
    """The whole page."""
    parts = [_head(plan), _memory(plan), _conversations(plan), _speed(plan), _notes(plan)]
    return "\n".join("\n".join(part) + "\n" for part in parts if part)


def _head(plan: Plan) -> list[str]:
    asked, draft = plan.request, plan.request.draft
    parts = plan.shape.parts
    active = plan.shape.active()
    size = f"{_count(parts.total)} parameters" + (f", {_count(active)} used by a token" if plan.shape.experts else "")
    lines = [f"target  {asked.target.name} ({asked.target.origin}): {size}, {plan.weights_as}"]
    if draft is not None:
        stored = draft.shape.stored.total
        weights = f"{_count(stored)} parameters" if stored else "no weights"
        lines.append(f"draft   {draft.name}, method {draft.shape.method} ({draft.origin}): {weights}")
        other = other_target(draft, asked.target)
        if other is not None:
            lines.append(f"        made for {other}, not for {asked.target.name}")
    gpu = asked.gpu
    number = f"{asked.tp} x " if asked.tp > 1 else ""
    speed = f"{gpu.half / 1e12:g} TFLOPS in 16 bits" if gpu.half else "arithmetic not known"
    lines.append(f"GPU     {number}{gpu.title}: {gpu.reported_gib:.2f} GiB, {gpu.bandwidth / 1e12:g} TB/s, {speed}")
    return lines


def _count(parameters: int) -> str:
    return f"{parameters / 1e9:.2f}B" if parameters >= 1e8 else f"{parameters / 1e6:.2f}M"


def _memory(plan: Plan) -> list[str]:
    memory = plan.memory
    rows = [
        (f"{memory.utilization:g} x {memory.gpu.reported_gib:.2f} GiB", memory.budget),
        ("weights", -memory.weights_here),
        ("runtime, activations, graphs", -memory.reserve),
        ("left for conversations", memory.room),
    ]
    if memory.draft_here:
        rows += [("the draft's weights", -memory.draft_here), ("left beside the draft", memory.room_with_draft)]
    where = "Memory of the GPU" if memory.tp == 1 else "Memory of each GPU"
    if memory.draft and memory.draft_tp < memory.tp:
        where = "Memory of the first GPU, which holds the whole draft"
    return [where, *(f"  {name:<30}{size / (1 << 30):>10.2f} GiB" for name, size in rows)]


def _conversations(plan: Plan) -> list[str]:
    memory, tokens = plan.memory, plan.request.context
    growing = plan.shape.growing * plan.kv[0] / 8
    lines = [
        f"A conversation of {tokens} tokens",
        f"  KV cache, {plan.kv[1]}: {gib(growing)} a token, {gib(memory.conversation.total)} a conversation",
    ]
    if memory.draft:
        own = memory.draft_conversation.total
        lines.append(f"  the draft's: {gib(own)} a conversation" if own else "  the draft's: none")
    lines.append(f"  fit at once: {memory.conversations} without a draft" + _fewer(plan))
    return lines


def _fewer(plan: Plan) -> str:
    memory = plan.memory
    if not memory.draft:
        return ""
    less = memory.conversations - memory.conversations_with_draft
    cost = memory.draft_here / memory.conversation.per_gpu if memory.conversation.per_gpu else 0.0
    share = f"; its weights alone are worth {cost:.1f} of them" if memory.draft_here else ""
    return f", {memory.conversations_with_draft} with it ({less} fewer{share})"


def _speed(plan: Plan) -> list[str]:
    asked = plan.request
    read = asked.gpu.bandwidth * asked.tp / plan.single_stream
    lines = [
        f"One stream: at most {plan.single_stream:.1f} tokens/s ({asked.gpu.bandwidth * asked.tp / 1e12:g} TB/s over "
        f"{read / 1e9:.2f} GB a token)",
    ]
    if plan.problem is not None:
        return lines
    return [*lines, "", *_table(plan), "", *_verdict(plan)]


_PLAIN = (("conversations", 14), ("TPOT ms", 10), ("tokens/s", 11))
_BOTH = (
    ("conversations", 13), ("k", 3), ("TPOT ms plain", 14), ("with draft", 11), ("tokens/s plain", 15),
    ("with draft", 11), ("ratio", 7), ("break-even", 11),
)  # fmt: skip


def _table(plan: Plan) -> Iterator[str]:
    columns = _BOTH if plan.request.draft else _PLAIN
    yield "".join(f"{name:>{width}}" for name, width in columns)
    for point in plan.curve:
        cells = _cells(point) if plan.request.draft else _plain_cells(point)
        yield "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, columns, strict=True))


def _plain_cells(point: Point) -> list[str]:
    return [str(point.concurrency), f"{point.baseline_tpot_ms:.2f}", f"{point.baseline_output_throughput:.0f}"]


def _cells(point: Point) -> list[str]:
    rate, base = point.output_throughput, point.baseline_output_throughput
    return [
        str(point.concurrency),
        str(point.k),
        f"{point.baseline_tpot_ms:.2f}",
        "unknown" if point.tpot_ms is None else f"{point.tpot_ms:.2f}",
        f"{base:.0f}",
        "unknown" if rate is None else f"{rate:.0f}",
        "-" if rate is None else f"{rate / base:.2f}",
        "-" if point.break_even is None else f"{point.break_even:.2f}",
    ]


def _verdict(plan: Plan) -> list[str]:
    if plan.request.draft is None:
        return ["No draft was given; add --draft to see what one costs and where it pays."]
    tested = ", ".join(str(level) for level in plan.request.concurrency)
    even = "break-even: the mean acceptance length at which the draft just pays, bonus token included"
    if not plan.acceptance.known:
        return [
            "Whether the draft pays is not known, since its acceptance is not: it pays where it is longer than the",
            f"break-even. {even[0].upper()}{even[1:]}.",
        ]
    lengths = ", ".join(f"{plan.acceptance.length(k):.2f} at k = {k}" for k in sorted(set(_shown_k(plan))))
    lines = [f"Mean acceptance length: {lengths} ({plan.acceptance.source}).", f"{even[0].upper()}{even[1:]}."]
    top = max(plan.request.concurrency)
    if not plan.pays_up_to:
        others = [str(point.concurrency) for point in plan.curve if point.pays]
        more = f", but at {', '.join(others)}" if others else ""
        lines.append(f"The draft does not pay at {plan.curve[0].concurrency}{more} (levels planned: {tested}).")
    elif plan.pays_up_to == top:
        lines.append(f"The draft pays at every level planned: {tested}.")
    else:
        lines.append(f"The draft pays up to {plan.pays_up_to} conversations (levels planned: {tested}).")
    best = ", ".join(f"{level}: {k or 'no draft'}" for level, k in plan.best_k.items())
    lines.append(f"Best k by conversations: {best}.")
    return [line for each in lines for line in textwrap.wrap(each, 100)]


def _shown_k(plan: Plan) -> list[int]:
    return [point.k for point in plan.curve if point.k]


def _notes(plan: Plan) -> list[str]:
    lines = ["Assumptions"]
    for each in plan.assumptions:
        lines += textwrap.wrap(each, 98, initial_indent="- ", subsequent_indent="  ")
    return lines
