"""Seconds of a step: bytes over bandwidth, plus operations over arithmetic, plus launches.

Reading and computing are added, not overlapped: published curves over concurrency fall long before the corner of an
ideal roofline, and the sum meets them (tests/planning/test_published.py). The constants are few and named here."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.planning.hardware import Gpu
from specctl.planning.precision import Precision
from specctl.planning.shape import Parts, Piece

BANDWIDTH_SHARE = 0.8  # of the peak that kernels reach (aiconfigurator's empirical factor)
ARITHMETIC_SHARE = 0.6
KERNELS_A_LAYER = 10
SECONDS_A_KERNEL = 3e-6  # aiconfigurator's figure for a launch inside a graph
SECONDS_AN_ALL_REDUCE = 10e-6  # two for each layer of a model on several GPUs
NEW_EXPERTS_A_DRAFTED_ROW = 0.5  # neighbouring tokens share experts: a drafted row counts as half a conversation's own
SECONDS_A_DRAFT_FORWARD = 1e-4  # sampling and bookkeeping of one drafted token
SECONDS_A_VERIFY_STEP = 8e-4  # acceptance, gathering of states, host work of a step with a draft


@dataclass(frozen=True)
class Work:
    """What one forward of a model costs: the weights it reads, its cache, its layers; `tp` GPUs share it."""

    read: Parts
    precision: Precision
    cache: tuple[Piece, ...] = ()
    kv_bits: float = 16
    state_bytes: float = 0.0
    layers: int = 0
    experts: int = 0
    experts_per_token: int = 0
    attention_flops: tuple[tuple[int, int | None], ...] = ()
    tp: int = 1

    def touched(self, choices: float) -> float:
        """The share of the routed experts that `choices` tokens need, if each chooses by itself."""
        if not self.experts:
            return 1.0
        return float(1 - (1 - self.experts_per_token / self.experts) ** choices)

    def weight_bytes(self, rows: float, sequences: float) -> float:
        """Bytes of weights that a forward over `rows` tokens of `sequences` conversations reads, on all GPUs."""
        choices = sequences + max(rows - sequences, 0) * NEW_EXPERTS_A_DRAFTED_ROW
        experts = Parts(experts=self.read.experts)
        everything = Parts(lookup=self.read.lookup)
        rest = self.precision.size(self.read) - self.precision.size(experts) - self.precision.size(everything)
        return rest + self.precision.size(experts) * self.touched(choices)

    def cache_bytes(self, context: int) -> float:
        """Bytes of one conversation that a forward reads on each GPU."""
        found = sum(
            piece.elements * min(context, piece.window or context) * shard(piece, self.tp) for piece in self.cache
        )
        return found * self.kv_bits / 8 + self.state_bytes / self.tp

    def flops(self, rows: float, context: int) -> float:
        """Operations of a forward over `rows` tokens behind `context` others, on all GPUs together."""
        share = self.experts_per_token / self.experts if self.experts else 1.0
        parts = self.read
        weights = parts.attention + parts.mlp + parts.head + parts.experts * share
        weights += parts.embedding if parts.head == 0 else 0
        looks = sum(each * min(context, window or context) for each, window in self.attention_flops)
        return rows * (2 * weights + looks)

    def seconds(self, gpu: Gpu, rows: float, sequences: float, context: int) -> float:
        """Time of a forward over `rows` tokens of `sequences` conversations."""
        moved = self.weight_bytes(rows, sequences) / self.tp + sequences * self.cache_bytes(context)
        reading = moved / (gpu.bandwidth * BANDWIDTH_SHARE)
        peak = gpu.flops(self.precision.eight_bit_arithmetic)
        computing = self.flops(rows, context) / self.tp / (peak * ARITHMETIC_SHARE) if peak else 0.0
        launches = self.layers * KERNELS_A_LAYER * SECONDS_A_KERNEL
        talking = 2 * self.layers * SECONDS_AN_ALL_REDUCE if self.tp > 1 else 0.0
        return reading + computing + launches + talking


def shard(piece: Piece, tp: int) -> float:
    """The share of a piece of the cache that each of `tp` GPUs holds: heads are dealt out, one at least."""
    return max(1 / tp, 1 / piece.heads)


def ceiling(gpu: Gpu, weight_bytes: float, tp: int = 1) -> float:
    """Tokens/s of one stream that bandwidth alone allows: every weight is read once a token, the cache ignored."""
    return gpu.bandwidth * tp / weight_bytes


@dataclass(frozen=True)
class Drafting:
    """The draft's side of a step; `work` is None where nothing runs on the GPU."""

    work: Work | None
    parallel: bool

    def seconds(self, gpu: Gpu, k: int, sequences: float, context: int) -> float:
        """Time to draft k tokens for each sequence."""
        if self.work is None:
            return 0.0
        if self.parallel:
            return self.work.seconds(gpu, sequences * k, sequences, context) + SECONDS_A_DRAFT_FORWARD
        return k * (self.work.seconds(gpu, sequences, sequences, context) + SECONDS_A_DRAFT_FORWARD)


def plain_step(gpu: Gpu, target: Work, sequences: float, context: int) -> float:
    """Seconds of a step that yields one token for each sequence."""
    return target.seconds(gpu, sequences, sequences, context)


def draft_step(gpu: Gpu, target: Work, drafting: Drafting, k: int, sequences: float, context: int) -> float:
    """Seconds of a step that drafts k tokens for each sequence and verifies k + 1 rows of it."""
    verify = target.seconds(gpu, sequences * (k + 1), sequences, context)
    return verify + drafting.seconds(gpu, k, sequences, context) + SECONDS_A_VERIFY_STEP
