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
from train.heads.card import write_card
from train.heads.fit import Plan, fit
from train.heads.last_state import MedusaRecipe, MlpSpeculatorRecipe
from train.heads.measure import evaluate, held_out_prompts, run
from train.heads.parts import Sizes
from train.heads.recipe import TAPS, Recipe, Teacher, teacher_of
from train.heads.unrolled import Eagle3Recipe, EagleRecipe, MtpRecipe
from train.heads.vocabulary import common_tokens
from train.recording import FACTS, save_states

DRAFT_VOCABULARY = 1280
EAGLE3_TAPS = (2, 5, 10)
PASSES = 3.0
OUTPUT_LEN = 128
METHODS = ("eagle3", "mtp", "dflash", "pard", "eagle", "medusa", "mlp_speculator")


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
        "eagle3": lambda: Eagle3Recipe(teacher, common_tokens(recording, DRAFT_VOCABULARY), EAGLE3_TAPS),
        "mtp": lambda: MtpRecipe(teacher),
        "dflash": lambda: DFlashRecipe(teacher),
        "pard": lambda: pard(teacher, draft),
        "eagle": lambda: EagleRecipe(teacher),
        "medusa": lambda: MedusaRecipe(teacher),
        "mlp_speculator": lambda: MlpSpeculatorRecipe(teacher),
    }


def measure(methods: list[str], out: Path, recording: Path) -> None:
    """Figures and cards of heads that lie in `out`."""
    target = load_target("demo", dtype="float32")
    plain, _ = run(target, None, held_out_prompts(target), OUTPUT_LEN)
    facts = json.loads((recording / FACTS).read_text(encoding="utf-8"))
    for name in methods:
        folder = out / folder_name(name)
        found = evaluate(target, name, str(folder), plain=plain, max_tokens=OUTPUT_LEN)
        (folder / "evaluation.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        write_card(folder, facts, f"python -m train.heads --recording FOLDER --only {name}", shared=True)
        print(f"{name}: {found['mean_acceptance_length']:.2f} at k = {found['k']}", flush=True)


def folder_name(method: str) -> str:
    """The bundled name of the demo's head."""
    return f"demo-{method.replace('_', '-')}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recording", type=Path, required=True, help="a folder of train.recording")
    parser.add_argument("--out", type=Path, default=bundled_dir(), help="folder of the model folders")
    parser.add_argument("--only", default="", help="methods, comma-separated")
    parser.add_argument("--passes", type=float, default=PASSES)
    parser.add_argument("--only-measure", action="store_true", help="train nothing; write figures and cards")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    layers = (*TAPS, FINAL)
    wanted = [name for name in arguments.only.split(",") if name] or list(METHODS)
    if not arguments.only_measure:
        if "layers" not in json.loads((arguments.recording / FACTS).read_text(encoding="utf-8")):
            save_states(arguments.recording, load_target("demo", dtype="bfloat16"), layers)
        recording, teacher = Recording(arguments.recording), teacher_of(load_target("demo", dtype="float32"), layers)
        known = recipes(teacher, recording, bundled_dir() / "demo-draft")
        for name in wanted:
            torch.manual_seed(Plan(1).seed)
            fit(known[name](), recording, Plan(arguments.passes), arguments.out / folder_name(name))
    measure(wanted, arguments.out, arguments.recording)


if __name__ == "__main__":
    main()
