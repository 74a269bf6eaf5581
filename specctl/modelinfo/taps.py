"""What the layer ids of an EAGLE-3 head count: the same key is read in two ways."""

from __future__ import annotations

from collections.abc import Sequence


def name_outputs(ids: Sequence[int], num_layers: int) -> bool | None:
    """Whether ``ids`` name the layers whose output is read (SpecForge, SGLang) rather than count layers passed (EAGLE's
    own code, vLLM), one more; told by the usual ids of each way. None where it could be either.
    """
    by_output = ids[0] == 1 or ids[-1] == num_layers - 4
    by_passed = ids[0] == 2 or num_layers in ids or ids[-1] == num_layers - 3
    return None if by_output == by_passed else by_output
