"""Faults planted into the bundled heads: what each costs, and whether the check at load names it.

    python -m benchmarks.planted_faults

Acceptance lengths are those of two drafted tokens along the bundled calibration text. The last lines are about what the
check costs on one thread: CPU seconds of it and of the load without it, imports included.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from specctl.errors import SpecctlError
from specctl.runtime import EngineOptions, Target, make_engine
from specctl.runtime.probing.check import DEPTH, draft_check
from specctl.runtime.probing.lesson import Lesson, bundled_texts
from specctl.runtime.probing.trial import Trial
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS
from tests.runtime import plant

MASKED: dict[str, object] = {"mask_token_id": 0}
PLANTS: list[tuple[str, str, str, plant.Edit, dict[str, object]]] = [
    ("sound", "eagle3", plant.EAGLE3, dict, {}),
    *(
        (f"layers passed {ids}", "eagle3", plant.EAGLE3, dict, plant.tapped(ids))
        for ids in ([1, 4, 10], [3, 6, 10], [4, 7, 10], [2, 5, 7], [5, 2, 10], [2, 10, 5], [10, 5, 2], [5, 10, 2])
    ),
    ("norm_before_residual", "eagle3", plant.EAGLE3, dict, {"norm_before_residual": True}),
    ("norm_output", "eagle3", plant.EAGLE3, dict, {"norm_output": True}),
    ("halves exchanged", "eagle3", plant.EAGLE3, plant.CROSSED, {}),
    ("rope_theta 1e6", "eagle3", plant.EAGLE3, dict, {"rope_theta": 1e6}),
    ("sound", "eagle", plant.EAGLE, dict, {}),
    ("halves exchanged", "eagle", plant.EAGLE, plant.FUSION, {}),
    ("rope_theta 1e6", "eagle", plant.EAGLE, dict, {"rope_theta": 1e6}),
    ("sound", "mtp", plant.MTP, dict, {}),
    ("halves exchanged", "mtp", plant.MTP, plant.MTP_FUSION, {}),
    ("rope_theta 1e6", "mtp", plant.MTP, dict, {"rope_theta": 1e6}),
    ("sound", "medusa", plant.MEDUSA, dict, {}),
    ("heads from behind", "medusa", plant.MEDUSA, plant.turned, {}),
    ("sound", "mlp_speculator", plant.MLP, dict, {}),
    ("scale_input", "mlp_speculator", plant.MLP, dict, {"scale_input": False}),
    ("sound", "dflash", plant.DFLASH, dict, {}),
    *(
        (
            f"layers {ids}",
            "dflash",
            plant.DFLASH,
            dict,
            {"dflash_config": {"mask_token_id": 0, "target_layer_ids": ids}},
        )
        for ids in ([2, 5, 8], [3, 6, 9], [7, 4, 1])
    ),
    ("rope_theta 1e6", "dflash", plant.DFLASH, dict, {"rope_theta": 1e6}),
    ("sound", "pard", plant.PARD, dict, {}),
    ("mask token 7", "pard", plant.PARD, dict, {"pard_token": 7}),
    ("rope_theta 1e6", "pard", plant.PARD, dict, {"rope_theta": 1e6}),
    ("sound", "draft_model", plant.DRAFT, dict, {}),
    ("rope_theta 1e6", "draft_model", plant.DRAFT, dict, {"rope_theta": 1e6}),
]
ROW = "{:15} {:24} {:>6}  {}"


def said(target: Target, spec: SpecDecodeConfig) -> tuple[str, str]:
    """The acceptance length, and what a user is told."""
    try:
        engine = make_engine(target, spec, EngineOptions(4, draft_check=True))
    except SpecctlError as error:
        return "-", f"refused: {error.message}"
    marks = Trial(target, spec, Lesson(target, bundled_texts(target)), DEPTH).marks()
    found = [note.partition("Cause: ")[2].partition("; ")[0] for note in engine.notes if note.startswith("WARNING")]
    told = [note for note in engine.notes if not note.startswith("WARNING")]
    return f"{marks.length:.2f}" if marks else "-", "; ".join(
        [*(f"names {each}" for each in found), *told]
    ) or "nothing"


def main() -> None:
    """Print the table, then the cost."""
    torch.set_num_threads(1)  # threads that wait count as CPU seconds, too
    loading = time.process_time()
    target = plant.demo()
    print(ROW.format("method", "planted", "length", "said at load"))
    with TemporaryDirectory() as place:
        for number, (name, method, source, edit, keys) in enumerate(PLANTS):
            model = plant.copy(Path(place) / str(number), source, edit, **keys)
            print(ROW.format(method, name, *said(target, SpecDecodeConfig(METHODS[method](), DEPTH, model=model))))
    for _, method, source, *_ in (row for row in PLANTS if row[0] == "sound"):
        spec = SpecDecodeConfig(METHODS[method](), DEPTH, model=source)
        begun = time.process_time()
        engine = make_engine(target, spec, EngineOptions(4, draft_check=False))
        made = time.process_time()
        draft_check(engine, spec)
        cost, load = time.process_time() - made, loading + made - begun
        print(f"{method:15} check {cost:.2f} s, {100 * cost / (load + cost):.0f} % of a load of {load + cost:.2f} s")


if __name__ == "__main__":
    main()
