"""Trains the demo's heads: `python -m train.heads --recording FOLDER [--only eagle3,medusa]`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file

from specctl.resources import bundled_dir
from specctl.runtime import load_target
from specctl.runtime.models.hidden import FINAL
from train.heads.batches import Recording
from train.heads.blocks import DFlashRecipe, PardRecipe
from train.heads.fit import Plan, fit
from train.heads.last_state import MedusaRecipe, MlpSpeculatorRecipe
from train.heads.parts import Sizes
from train.heads.recipe import TAPS, Recipe, Teacher, teacher_of
from train.heads.unrolled import Eagle3Recipe, EagleRecipe, MtpRecipe
from train.heads.vocabulary import common_tokens
from train.recording import FACTS, save_states

DRAFT_VOCABULARY = 1024
PASSES = 0.881


def pard(teacher: Teacher, draft: Path) -> PardRecipe:
    """From the bundled draft model."""
    config = json.loads((draft / "config.json").read_text(encoding="utf-8"))
    sizes = Sizes(
        config["hidden_size"],
        config["intermediate_size"],
        config["num_attention_heads"],
        config["num_key_value_heads"],
        config["head_dim"],
        config["rms_norm_eps"],
        config["rope_theta"],
    )
    weights = {name: w.float() for name, w in load_file(str(draft / "model.safetensors")).items()}
    return PardRecipe(teacher, weights, sizes, config)


def recipes(teacher: Teacher, recording: Recording, draft: Path) -> dict[str, Callable[[], Recipe]]:
    """How each head is begun, by its canonical method."""
    return {
        "eagle3": lambda: Eagle3Recipe(teacher, common_tokens(recording, DRAFT_VOCABULARY)),
        "mtp": lambda: MtpRecipe(teacher),
        "dflash": lambda: DFlashRecipe(teacher),
        "pard": lambda: pard(teacher, draft),
        "eagle": lambda: EagleRecipe(teacher),
        "medusa": lambda: MedusaRecipe(teacher),
        "mlp_speculator": lambda: MlpSpeculatorRecipe(teacher),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recording", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=bundled_dir(), help="folder of the model folders")
    parser.add_argument("--only", default="", help="methods, comma-separated")
    parser.add_argument("--passes", type=float, default=PASSES)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    layers = (*TAPS, FINAL)
    if "layers" not in json.loads((arguments.recording / FACTS).read_text(encoding="utf-8")):
        save_states(arguments.recording, load_target("demo", dtype="bfloat16"), layers)
    recording, teacher = Recording(arguments.recording), teacher_of(load_target("demo", dtype="float32"), layers)
    known = recipes(teacher, recording, bundled_dir() / "demo-draft")
    wanted = [name for name in arguments.only.split(",") if name] or list(known)
    for name in wanted:
        torch.manual_seed(Plan(1).seed)
        fit(known[name](), recording, Plan(arguments.passes), arguments.out / f"demo-{name.replace('_', '-')}")


if __name__ == "__main__":
    main()
