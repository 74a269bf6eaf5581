"""Recurrent layers in a flat batch: a state for each sequence, and its way back after a rejected draft.

A state cannot be cut back; it is rebuilt. Each sequence keeps the state at an *anchor* and the layer's inputs since
then. A forward that begins before the newest position runs the inputs up to there again from the anchor, in this layer
alone: the rest of the network is not computed twice.

    inputs    | a0 a1 a2 a3 a4 |        anchor at a0: the verify step that drafted a1 to a4
    accepted  | a0 a1 |                 the next step begins at 2: a0 and a1 run again, then its own rows

What no forward can take back: the first row of a forward of several rows, and all before it. So such a forward moves
the anchor to its beginning; a chain of single rows (a draft model's, or plain decoding) keeps at least `UNDO` rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from specctl.runtime.kv_cache import Span
from specctl.runtime.models.flat_step import Step

UNDO = 128


@dataclass
class State:
    """What a layer keeps of a sequence: the inputs of its convolution and its recurrent state, [1, ...] each; None
    before the first row. The names of the methods are those that transformers' layers call on their cache.
    """

    convolved: Tensor | None = None
    recurrent: Tensor | None = None

    def get_conv_state(self, *_where: Any, **_more: Any) -> Tensor | None:
        return self.convolved

    def get_recurrent_state(self, *_where: Any, **_more: Any) -> Tensor | None:
        return self.recurrent

    def is_recording_past(self, *_where: Any) -> bool:
        return False

    def update_conv_state(self, rows: Tensor, *_where: Any, conv_kernel_size: int, **_more: Any) -> Tensor:
        """``rows`` [batch, channels, n] behind what is kept; the last ``conv_kernel_size`` stay."""
        if self.convolved is None:
            self.convolved = rows.new_zeros(*rows.shape[:2], conv_kernel_size)
        seen = torch.cat([self.convolved, rows], dim=-1)
        self.convolved = seen[..., -conv_kernel_size:]
        return seen

    def update_recurrent_state(self, state: Tensor, *_where: Any, **_more: Any) -> Tensor:
        self.recurrent = state
        return state

    def each(self) -> list[State]:
        """The state of each sequence of a batch, in memory of its own."""
        assert self.convolved is not None, "a layer that ran has set it"
        assert self.recurrent is not None, "a layer that ran has set it"
        pairs = zip(torch.split(self.convolved, 1), torch.split(self.recurrent, 1), strict=True)
        return [State(convolved.clone(), recurrent.clone()) for convolved, recurrent in pairs]


def _joined(states: Sequence[State]) -> State:
    """The states side by side, copied: layers change them in place."""
    if states[0].recurrent is None:
        return State()
    convolved, recurrent = ([getattr(state, name) for state in states] for name in ("convolved", "recurrent"))
    return State(torch.cat(convolved), torch.cat(recurrent))


@dataclass
class Trail:
    """One sequence in one layer. ``rows`` [n, width] each: the inputs from the anchor to ``end``."""

    anchor: int = 0
    anchor_state: State = field(default_factory=State)
    spare: tuple[int, State] | None = None
    rows: list[Tensor] = field(default_factory=list)
    end: int = 0
    state: State = field(default_factory=State)

    def rewind(self, start: int) -> Tensor:
        """Go back to the anchor and answer the inputs [n, width] that lead from there to ``start``."""
        assert self.anchor <= start < self.end, "no caller takes back what it has built upon"
        again = torch.cat(self.rows)[: start - self.anchor]
        self.rows, self.end, self.state, self.spare = [], self.anchor, self.anchor_state, None
        return again

    def set_anchor(self) -> None:
        """Nothing before the newest position will be taken back."""
        self.anchor, self.anchor_state, self.spare, self.rows = self.end, self.state, None, []

    def keep_undo(self) -> None:
        """A single row follows: move the anchor, but leave `UNDO` rows between it and the end."""
        if self.spare is None:
            self.spare = (self.end, self.state)
        elif self.end - self.spare[0] >= UNDO:
            kept = torch.cat(self.rows)[self.spare[0] - self.anchor :]
            self.anchor, self.anchor_state = self.spare
            self.spare, self.rows = (self.end, self.state), [kept]

    def extend(self, rows: Tensor, state: State) -> None:
        self.rows.append(rows)
        self.end += len(rows)
        self.state = state


class RecurrentLayer:
    """Stands in for the forward of a recurrent layer, whose own ``forward`` takes [batch, rows, width]."""

    def __init__(self, forward: Callable[..., Tensor], layer: int, step: Step) -> None:
        self._forward = forward
        self._layer = layer
        self._step = step

    def __call__(self, hidden_states: Tensor, **_: Any) -> Tensor:
        """``hidden_states`` [1, T, width] of the step's spans, one after the other."""
        assert self._step.cache is not None, "set before the network runs"
        trails: dict[int, Trail] = self._step.cache.recurrent.setdefault(self._layer, defaultdict(Trail))
        spans = self._step.spans
        parts = torch.split(hidden_states[0], [span.count for span in spans])
        self._begin(trails, spans)
        outs = self._run([(trails[span.slot], rows) for span, rows in zip(spans, parts, strict=True)])
        return torch.cat(outs).unsqueeze(0)

    def _begin(self, trails: dict[int, Trail], spans: Sequence[Span]) -> None:
        """Bring each trail to where its span begins."""
        for span in spans:
            if span.start == 0:
                trails[span.slot] = Trail()
        cut = {span.slot: span.start for span in spans if span.start < trails[span.slot].end}
        again = [(trails[slot], trails[slot].rewind(start)) for slot, start in cut.items()]
        self._run([(trail, rows) for trail, rows in again if len(rows)])
        for span in spans:
            trail = trails[span.slot]
            assert trail.end == span.start, "rows follow one another"
            if span.count > 1 or span.slot in cut:
                trail.set_anchor()
            else:
                trail.keep_undo()

    def _run(self, jobs: Sequence[tuple[Trail, Tensor]]) -> list[Tensor]:
        """The outputs [n, width] of each job's rows; jobs of equal length go through the layer together."""
        alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for place, (trail, rows) in enumerate(jobs):
            alike[len(rows), trail.state.recurrent is None].append(place)
        outs: dict[int, Tensor] = {}
        for places in alike.values():
            state = _joined([jobs[place][0].state for place in places])
            rows = torch.stack([jobs[place][1] for place in places])
            out = self._forward(rows, cache=state, attention_mask=None)
            for place, own, part in zip(places, state.each(), out, strict=True):
                jobs[place][0].extend(jobs[place][1], own)
                outs[place] = part
        return [outs[place] for place in range(len(jobs))]


def replace_recurrent(layer: nn.Module, index: int, step: Step) -> None:
    """Let the recurrent ``layer`` of a network work on ``step``."""
    layer.forward = RecurrentLayer(layer.forward, index, step)
