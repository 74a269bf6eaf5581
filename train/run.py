"""Everything in one command: `python -m train.run` trains target and draft, measures them and writes their cards."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from train import draft, target
from train.card import write_card
from train.corpus.build import bench_examples, write_prompts
from train.evaluate import evaluate

BUNDLED = Path(__file__).resolve().parent.parent / "specctl" / "bundled"
TARGET_CARD = "The target of specctl's bundled demo: a tiny chat model trained from scratch."
DRAFT_CARD = "The draft of specctl's bundled demo: one layer, distilled from `demo`, with the same tokenizer."


def measure(bundled: Path) -> bool:
    """Evaluate the models in the folder, write figures and cards, and say whether every bar is met."""
    figures = evaluate(bundled / "demo", bundled / "demo-draft", None)
    text = json.dumps(figures, indent=2)
    (bundled / "demo" / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    cards(bundled)
    return all(figures["bars"].values())


def cards(bundled: Path) -> None:
    """Write both model cards from the figures that lie beside the target."""
    figures = json.loads((bundled / "demo" / "evaluation.json").read_text(encoding="utf-8"))
    write_card(bundled / "demo", figures, TARGET_CARD, is_target=True)
    write_card(bundled / "demo-draft", figures, DRAFT_CARD, is_target=False)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundled", type=Path, default=BUNDLED)
    parser.add_argument("--minutes", type=float, default=39, help="for the target")
    parser.add_argument("--draft-minutes", type=float, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only-measure", action="store_true", help="train nothing; write figures and cards")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.bundled.mkdir(parents=True, exist_ok=True)
    write_prompts(arguments.bundled / "prompts.jsonl", bench_examples())
    if not arguments.only_measure:
        target.train(arguments.bundled / "demo", arguments.minutes, 10)
        draft.train(arguments.bundled / "demo", arguments.bundled / "demo-draft", arguments.draft_minutes, 192)
    raise SystemExit(0 if measure(arguments.bundled) else 1)


if __name__ == "__main__":
    main()
