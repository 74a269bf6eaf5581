"""Bytes on each GPU: weights, draft, cache; and how many conversations that leaves room for.

The rule is ours and is printed: `utilization` of what the driver reports, minus the weights, minus a reserve for
runtime, activations and graphs, is the room for conversations. All counts are floors."""

from __future__ import annotations

from dataclasses import dataclass

from specctl.planning.hardware import GIB, Gpu
from specctl.planning.precision import DTYPES
from specctl.planning.roofline import shard
from specctl.planning.shape import Piece, Shape

UTILIZATION = 0.9
RESERVE_GIB = 5.0


@dataclass(frozen=True)
class Conversation:
    """Bytes of one conversation: of the whole cache (`total`), and of the fullest GPU (`per_gpu`)."""

    total: float
    per_gpu: float

    def __add__(self, more: Conversation) -> Conversation:
        return Conversation(self.total + more.total, self.per_gpu + more.per_gpu)


def conversation(cache: tuple[Piece, ...], tokens: int, kv_bits: float, tp: int = 1) -> Conversation:
    """What `tokens` tokens leave in a cache that `tp` GPUs share."""
    total = per_gpu = 0.0
    for piece in cache:
        size = piece.elements * min(tokens, piece.window or tokens) * kv_bits / 8
        total += size
        per_gpu += size * shard(piece, tp)
    return Conversation(total, per_gpu)


def recurrent_bytes(shape: Shape, bits: float = 16) -> float:
    """Bytes of the recurrent state of one sequence; the state's own dtype where the config names one."""
    own = DTYPES.get(str(shape.state_dtype or ""), bits)
    return (shape.state * own + shape.conv * bits) / 8


@dataclass(frozen=True)
class Memory:
    """The sums. `weights` and `draft_weights`: of all GPUs together; those on the fullest GPU end in `_here`.

    `draft` is False where no draft was asked for; `reserve` is per GPU."""

    gpu: Gpu
    tp: int
    utilization: float
    reserve: float
    weights: float
    conversation: Conversation
    draft: bool = False
    draft_weights: float = 0.0
    draft_tp: int = 1
    draft_conversation: Conversation = Conversation(0, 0)

    @property
    def budget(self) -> float:
        """Bytes of one GPU that may be used."""
        return self.gpu.memory * self.utilization

    @property
    def weights_here(self) -> float:
        """Bytes of the target's weights on one GPU."""
        return self.weights / self.tp

    @property
    def draft_here(self) -> float:
        """Bytes of the draft's weights on the fullest GPU: a draft that is not split lies on the first one whole."""
        return self.draft_weights / self.draft_tp

    @property
    def room(self) -> float:
        """Bytes for conversations without a draft; negative where the weights do not fit."""
        return self.budget - self.weights_here - self.reserve

    @property
    def room_with_draft(self) -> float:
        """Bytes for conversations beside the draft's weights."""
        return self.room - self.draft_here

    @property
    def conversations(self) -> int:
        """How many conversations fit without the draft."""
        return _floor(self.room, self.conversation.per_gpu)

    @property
    def conversations_with_draft(self) -> int:
        """How many fit with its weights and its cache."""
        return _floor(self.room_with_draft, self.conversation.per_gpu + self.draft_conversation.per_gpu)

    def smallest_utilization(self) -> float:
        """The smallest share of the memory that holds weights, reserve, draft and one conversation."""
        one = self.conversation.per_gpu + self.draft_conversation.per_gpu
        return (self.weights_here + self.draft_here + self.reserve + one) / self.gpu.memory

    def static_window(self, drafts_kv: bool = True) -> tuple[float, float]:
        """SGLang's `mem_fraction_static`: the smallest share that holds weights, draft and one conversation, and the
        largest that leaves the reserve free. None works where the first is above the second.
        """
        one = self.conversation.per_gpu + (self.draft_conversation.per_gpu if drafts_kv else 0)
        low = (self.weights_here + self.draft_here + one) / self.gpu.memory
        return low, 1 - self.reserve / self.gpu.memory


def _floor(room: float, each: float) -> int:
    return max(int(room // each), 0) if each > 0 else 0


def gib(size: float) -> str:
    """`1.25 GiB`; smaller sizes in MiB or KiB."""
    for unit, name in ((GIB, "GiB"), (1 << 20, "MiB")):
        if abs(size) >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size / 1024:.1f} KiB"
