"""Which target layers an EAGLE-3 head taps: the same key is counted in two ways, and guessing wrong costs acceptance
silently. See the head's card: by layers passed (EAGLE's own code, vLLM, speculators), or by the layer whose output it
is (SpecForge, SGLang), which is one less.
"""

from __future__ import annotations

from collections.abc import Sequence

from specctl.modelinfo.taps import name_outputs
from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.hidden import check_layers

_KEY = "eagle_aux_hidden_state_layer_ids"


def tap_layers(files: HeadFiles, override: Sequence[int] | None) -> tuple[int, ...]:
    """The taps in layers passed. ``override`` is in that count already and wins over the checkpoint.

    Raises SpecctlError where the checkpoint's ids could mean either count, or name layers the target does not have.
    """
    num_layers = files.target.num_layers
    taps = tuple(override) if override else _stated(files, num_layers)
    check_layers(taps, num_layers, f"the head {files.folder}")
    return taps


def _stated(files: HeadFiles, num_layers: int) -> tuple[int, ...]:
    nested, config = files.part("eagle_config"), files.config
    ids = nested[_KEY] if nested.get(_KEY) is not None else config.get(_KEY)
    if ids is None:
        return (2, num_layers // 2, num_layers - 3)
    if not isinstance(ids, list) or not ids or not all(type(each) is int for each in ids):
        raise files.refuse(f"{_KEY} is {ids!r}; wanted a list of whole numbers")
    if "speculators_model_type" in config:
        return tuple(ids)
    by_output = name_outputs(ids, num_layers)
    if by_output is None:
        raise files.refuse(
            f"{_KEY} {ids} may count layers passed or name the layers whose output is meant, one less",
            help=f"set aux_layers in the setting: {ids} if they count layers passed, {[i + 1 for i in ids]} if not",
        )
    return tuple(i + 1 for i in ids) if by_output else tuple(ids)
