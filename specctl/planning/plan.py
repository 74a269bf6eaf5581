"""The plan of one target on one kind of GPU: memory, ceiling, and the curve with and without a draft."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from specctl.errors import UsageError
from specctl.planning.acceptance import UNKNOWN, Acceptance
from specctl.planning.hardware import GIB, Gpu
from specctl.planning.memory import (
    RESERVE_GIB,
    UTILIZATION,
    Conversation,
    Memory,
    conversation,
    recurrent_bytes,
)
from specctl.planning.models import Known, KnownDrafting, other_target
from specctl.planning.precision import Precision, kv_bits, precision_of
from specctl.planning.roofline import Drafting, Work, ceiling, draft_step, plain_step
from specctl.planning.shape import Shape, shape_of

LONGEST_K = 8
USUAL_K = 3


@dataclass(frozen=True)
class Request:
    """What is to be planned. Sizes in tokens, `concurrency` in conversations; None: as the checkpoint or engine has
    it. `acceptance` overrides what the draft's makers published.
    """

    target: Known
    gpu: Gpu
    context: int
    concurrency: tuple[int, ...] = (1,)
    draft: KnownDrafting | None = None
    tp: int = 1
    draft_tp: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_dtype: str | None = None
    acceptance: Acceptance | None = None
    utilization: float = UTILIZATION
    reserve_gib: float = RESERVE_GIB
    k: int | None = None


@dataclass(frozen=True)
class Point:
    """One level of the curve. Times in ms a token, throughput in tokens/s over all conversations; None: not known.

    `running` and `running_plain`: how many of the conversations fit at once, with and without the draft."""

    concurrency: int
    k: int | None
    tpot_ms: float | None
    output_throughput: float | None
    baseline_tpot_ms: float
    baseline_output_throughput: float
    running: int
    running_plain: int
    break_even: float | None

    @property
    def pays(self) -> bool:
        """Whether the draft makes tokens come sooner without losing throughput."""
        if self.tpot_ms is None or self.output_throughput is None:
            return False
        return self.tpot_ms < self.baseline_tpot_ms and self.output_throughput >= self.baseline_output_throughput


@dataclass
class Plan:
    """The answers to one `Request`; everything is worked out when it is first asked for."""

    request: Request

    def __post_init__(self) -> None:
        _check(self.request)

    @cached_property
    def shape(self) -> Shape:
        """The target's shape."""
        return shape_of(self.request.target.facts)

    @cached_property
    def precision(self) -> Precision:
        """The target's precision, scaled so that it gives the bytes on disk where those are known and asked for."""
        asked = self.request
        found = precision_of(asked.target.facts, asked.dtype, asked.quantization)
        stored = asked.target.stored_bytes
        if stored is None or asked.dtype not in (None, "auto") or asked.quantization is not None:
            return found
        return found.scaled(stored / found.size(self.shape.parts))

    @property
    def weights_as(self) -> str:
        """How the target's weights are kept, in words."""
        asked = self.request
        if asked.target.stored_bytes is None or asked.dtype not in (None, "auto") or asked.quantization is not None:
            return self.precision.name
        return f"{asked.target.stored_bytes * 8 / self.shape.parts.total:.1f} bits a weight as stored"

    @cached_property
    def kv(self) -> tuple[float, str]:
        """Bits of a cached element, and their name."""
        return kv_bits(self.request.target.facts, self.request.kv_dtype)

    @property
    def draft_tp(self) -> int:
        """GPUs that share the draft: the target's number unless said otherwise."""
        return self.request.draft_tp or self.request.tp

    @property
    def k(self) -> int | None:
        """The count that memory is planned with: as asked, as recommended, else the usual one."""
        draft = self.request.draft
        if draft is None:
            return None
        count = self.request.k or draft.k or USUAL_K
        return min(count, draft.shape.max_k or count)

    @cached_property
    def draft_precision(self) -> Precision:
        """The draft's precision."""
        draft = self.request.draft
        if draft is None or draft.facts is None:
            return Precision("16-bit floats")
        own = precision_of(draft.facts)
        if draft.stored_bytes is None or not draft.shape.stored.total:
            return own
        return own.scaled(draft.stored_bytes / own.size(draft.shape.stored))

    @cached_property
    def memory(self) -> Memory:
        """Bytes on each GPU."""
        asked = self.request
        state = recurrent_bytes(self.shape)
        whole = conversation(self.shape.cache, asked.context, self.kv[0], asked.tp)
        found = Memory(
            gpu=asked.gpu,
            tp=asked.tp,
            utilization=asked.utilization,
            reserve=asked.reserve_gib * GIB,
            weights=self.precision.size(self.shape.parts),
            conversation=whole + Conversation(state, state / asked.tp),
        )
        if asked.draft is None:
            return found
        copies = state * (self.k or 0)  # a recurrent state cannot be cut back: one is kept for each drafted token
        own = conversation(asked.draft.shape.cache, asked.context, self.kv[0], self.draft_tp)
        return replace(
            found,
            draft=True,
            draft_weights=self.draft_precision.size(asked.draft.shape.stored),
            draft_tp=self.draft_tp,
            draft_conversation=own + Conversation(copies, copies / asked.tp),
        )

    @cached_property
    def work(self) -> Work:
        """The target's side of a step. The embedding is looked up, not read, unless it is the output matrix too."""
        shape = self.shape
        read = shape.parts if shape.parts.head == 0 else replace(shape.parts, embedding=0)
        return Work(
            read=read,
            precision=self.precision,
            cache=shape.cache,
            kv_bits=self.kv[0],
            state_bytes=2 * recurrent_bytes(shape),  # read and written
            layers=shape.layers,
            experts=shape.experts,
            experts_per_token=shape.experts_per_token,
            attention_flops=shape.attention_flops,
            tp=self.request.tp,
        )

    @cached_property
    def drafting(self) -> Drafting | None:
        """The draft's side of a step."""
        draft = self.request.draft
        if draft is None:
            return None
        shape = draft.shape
        if not shape.read.total:
            return Drafting(None, True)
        work = Work(
            read=shape.read,
            precision=self.draft_precision,
            cache=shape.cache,
            kv_bits=self.kv[0],
            layers=shape.layers,
            experts=shape.experts,
            experts_per_token=shape.experts_per_token,
            attention_flops=shape.attention_flops,
            tp=self.draft_tp,
        )
        return Drafting(work, shape.parallel)

    @cached_property
    def acceptance(self) -> Acceptance:
        """As given, else as published, else not known."""
        draft = self.request.draft
        if self.request.acceptance is not None or draft is None:
            return self.request.acceptance or UNKNOWN
        return UNKNOWN if other_target(draft, self.request.target) else draft.acceptance

    @cached_property
    def single_stream(self) -> float:
        """Tokens/s of one stream that bandwidth alone allows."""
        everything = replace(self.work, read=self.shape.parts)
        return ceiling(self.request.gpu, everything.weight_bytes(1, 1), self.request.tp)

    @property
    def counts(self) -> range:
        """The k that `best_k` chooses from: not far beyond those whose acceptance was measured."""
        draft = self.request.draft
        limit = min(
            (draft.shape.max_k if draft else None) or LONGEST_K, 2 * max(self.acceptance.lengths, default=4) + 1
        )
        return range(1, 1 + limit)

    def point(self, concurrency: int, k: int | None) -> Point:
        """The curve at one level, with k drafted tokens (None: without a draft)."""
        asked, memory = self.request, self.memory
        plain = max(min(concurrency, memory.conversations), 1)
        base = plain_step(asked.gpu, self.work, plain, asked.context)
        row = Point(concurrency, k, None, None, base * 1e3, plain / base, plain, plain, None)
        if self.drafting is None or k is None:
            return row
        running = max(min(concurrency, memory.conversations_with_draft), 1)
        step = draft_step(asked.gpu, self.work, self.drafting, k, running, asked.context)
        even = step / base * (plain / running)  # fewer fit with the draft: each has to be that much faster
        row = replace(row, running=running, break_even=even)
        if not self.acceptance.known:
            return row
        length = self.acceptance.length(k)
        return replace(row, tpot_ms=step / length * 1e3, output_throughput=running * length / step)

    def best(self, concurrency: int) -> Point:
        """The point with the most tokens/s over all k."""
        points = [self.point(concurrency, k) for k in self.counts]
        return max(points, key=lambda each: each.output_throughput or 0.0)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """One point for each level: at the k asked for, else at the best one, else at the planned one."""
        if self.request.draft is None or self.request.k is not None or not self.acceptance.known:
            return tuple(self.point(level, self.k) for level in self.request.concurrency)
        return tuple(self.best(level) for level in self.request.concurrency)

    @cached_property
    def best_k(self) -> dict[int, int]:
        """The best k by level, 0 where no draft pays; empty where acceptance is not known."""
        if self.request.draft is None or not self.acceptance.known:
            return {}
        points = {level: self.best(level) for level in self.request.concurrency}
        return {level: point.k or 0 if point.pays else 0 for level, point in points.items()}

    @cached_property
    def pays_up_to(self) -> int | None:
        """The largest level that pays with all lower ones, 0 where the first does not; None where not known."""
        if self.request.draft is None or not self.acceptance.known:
            return None
        kept = 0
        for point in sorted(self.curve, key=lambda each: each.concurrency):
            if not point.pays:
                break
            kept = point.concurrency
        return kept

    @cached_property
    def problem(self) -> tuple[str, str] | None:
        """Why this cannot run, and the cure; None where it can."""
        from specctl.planning.advice import impossible

        return impossible(self)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """Everything the figures hang on."""
        from specctl.planning.advice import assumptions

        return assumptions(self)

    def as_dict(self) -> dict[str, Any]:
        """The plan in the shape of `specctl plan --format json`; bytes, ms, tokens/s."""
        memory, fits = self.memory, self.problem is None
        kv_total = self.shape.growing * self.kv[0] / 8
        return {
            "format_version": 1,
            "inputs": self._inputs(),
            "memory": {
                "weights_bytes": round(memory.weights),
                "draft_weights_bytes": round(memory.draft_weights) if memory.draft else None,
                "kv_bytes_per_token": round(kv_total),
                "kv_bytes_per_conversation": round(memory.conversation.total),
                "draft_kv_bytes_per_conversation": round(memory.draft_conversation.total) if memory.draft else None,
                "other_bytes": round(memory.reserve * memory.tp),
                "conversations": memory.conversations,
                "conversations_with_draft": memory.conversations_with_draft if memory.draft else None,
            },
            "single_stream_tokens_per_s": round(self.single_stream, 2),
            "curve": [_row(point) for point in self.curve] if fits else [],
            "pays_up_to_concurrency": self.pays_up_to if fits else None,
            "best_k": {str(level): k for level, k in self.best_k.items()} if fits else {},
        }

    def _inputs(self) -> dict[str, Any]:
        asked, memory, draft = self.request, self.memory, self.request.draft
        even = {str(point.concurrency): _short(point.break_even) for point in self.curve} if draft else {}
        return {
            "target": asked.target.name,
            "draft": draft.name if draft else None,
            "method": draft.shape.method if draft else None,
            "gpu": asked.gpu.name,
            "tensor_parallel_size": asked.tp,
            "draft_tensor_parallel_size": self.draft_tp if draft else None,
            "context": asked.context,
            "concurrency": list(asked.concurrency),
            "weights": self.weights_as,
            "kv_dtype": self.kv[1],
            "gpu_memory_utilization": asked.utilization,
            "k": asked.k,
            "acceptance": {
                "source": self.acceptance.source,
                "lengths": {str(k): round(each, 3) for k, each in self.acceptance.lengths.items()},
                "break_even_acceptance_length": even,
            }
            if draft
            else None,
            "per_gpu": {
                "memory_bytes": round(asked.gpu.memory),
                "budget_bytes": round(memory.budget),
                "weights_bytes": round(memory.weights_here),
                "draft_weights_bytes": round(memory.draft_here) if draft else None,
                "other_bytes": round(memory.reserve),
                "room_bytes": round(memory.room),
            },
            "assumptions": list(self.assumptions),
        }


def _short(value: float | None, places: int = 3) -> float | None:
    return None if value is None else round(value, places)


def _row(point: Point) -> dict[str, Any]:
    return {
        "concurrency": point.concurrency,
        "k": point.k,
        "tpot_ms": _short(point.tpot_ms),
        "output_throughput": _short(point.output_throughput, 1),
        "baseline_tpot_ms": _short(point.baseline_tpot_ms),
        "baseline_output_throughput": _short(point.baseline_output_throughput, 1),
    }


def _check(asked: Request) -> None:
    """Raises `UsageError` for figures that no server could have."""
    facts = asked.target.facts
    for flag, value in (("--context", asked.context), ("--tp", asked.tp), ("--draft-tp", asked.draft_tp or 1)):
        if value < 1:
            raise UsageError(f"{flag} is {value}; a whole number above 0 was wanted")
    if not asked.concurrency or min(asked.concurrency) < 1:
        raise UsageError("--concurrency wants whole numbers above 0", help="for example --concurrency 1,8,32,128")
    if not 0 < asked.utilization <= 1:
        raise UsageError(f"--gpu-memory-utilization is {asked.utilization:g}; a share above 0 and up to 1 was wanted")
    if not 0 <= asked.reserve_gib < float("inf"):
        raise UsageError(f"--reserve-gib is {asked.reserve_gib:g}; GiB from 0 on were wanted")
    limit = facts.max_positions
    if limit and asked.context > limit:
        raise UsageError(
            f"--context is {asked.context}; {asked.target.name} has {limit} positions",
            help=f"up to {limit} can be planned",
        )
    if facts.num_heads and facts.num_heads % asked.tp:
        raise UsageError(
            f"--tp is {asked.tp}; {asked.target.name} has {facts.num_heads} attention heads, which it does not divide"
        )
    if asked.draft_tp not in (None, 1, asked.tp):
        raise UsageError(f"--draft-tp is {asked.draft_tp}; engines take 1 or the target's {asked.tp}")
    draft = asked.draft
    if asked.k is not None and asked.k < 1:
        raise UsageError(f"--k is {asked.k}; a whole number above 0 was wanted")
    if asked.k is not None and draft is not None and draft.shape.max_k and asked.k > draft.shape.max_k:
        raise UsageError(f"--k is {asked.k}; {draft.name} drafts {draft.shape.max_k} tokens at most")
