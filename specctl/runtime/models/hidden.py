"""Which hidden states of a target a caller wants, in one convention.

Layer k (0 to the number of layers) is the residual stream after k layers and before any norm: 0 is the embedding, the
input of the first layer. `FINAL` is the stream after the last layer and the final norm, what the head multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence

from specctl.errors import SpecctlError

FINAL = -1


def check_layers(layers: Sequence[int], num_layers: int, whose: str) -> None:
    """Raises SpecctlError, naming ``whose`` wish it is, for layers that a target of ``num_layers`` does not have."""
    wrong = [layer for layer in layers if layer != FINAL and not 0 <= layer <= num_layers]
    if wrong:
        raise SpecctlError(
            f"{whose} taps the hidden state after layer {wrong[0]}; the target has {num_layers} layers",
            help="is it the head of another target, or are the layer ids counted in another way?",
        )
