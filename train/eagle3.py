"""An EAGLE-3 head for any small target, by self-distillation: `python -m train.eagle3 TARGET --out FOLDER`.

The target answers prompts, its states along the answers are kept, and a head learns to guess ahead from them. Prompts
come from the corpus, or from a file with a JSON object a line that holds `messages`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from specctl.bench.workloads import SETS, TEXT_SET
from specctl.errors import SpecctlError
from specctl.runtime import Target, load_target
from specctl.runtime.models.hidden import FINAL
from train.heads.batches import Recording
from train.heads.card import write_card
from train.heads.fit import Plan, fit
from train.heads.measure import evaluate
from train.heads.recipe import teacher_of
from train.heads.unrolled import Eagle3Recipe
from train.heads.vocabulary import common_tokens, covered
from train.recording import FACTS, corpus_prompts, record, save_states


def taps_of(num_layers: int) -> tuple[int, ...]:
    """A low, a middle and the last layer, in layers passed (for at least two layers)."""
    return (2, max(2, num_layers // 2), num_layers)


def file_prompts(target: Target, path: Path, longest: int) -> Iterator[list[int]]:
    """The prompts of a JSONL file of conversations; longer ones are left out."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if not isinstance(row, dict) or "messages" not in row:
            raise SpecctlError(f"{path}, line {number}: no object with messages")
        ids = target.encode_chat(row["messages"])
        if len(ids) <= longest:
            yield ids


def command(words: Sequence[str]) -> str:
    """What was typed, without the folders of this machine."""
    return "python -m train.eagle3 " + shlex.join(Path(w).name if Path(w).exists() else w for w in words)


def train(arguments: argparse.Namespace) -> None:
    """Record, train, measure, write the card."""
    target = load_target(arguments.target, dtype="float32")
    if not hasattr(target.model, "norm"):
        raise SpecctlError(f"{arguments.target} is not of the Llama, Qwen or Mistral family that this trains heads for")
    asked = target if arguments.recording_dtype == "float32" else load_target(arguments.target, dtype="bfloat16")
    taps, out = taps_of(target.model.num_layers), arguments.out
    layers = (*sorted({*taps} - {target.model.num_layers}), FINAL)
    folder = arguments.recording or out / "recording"
    if not (folder / FACTS).is_file():
        longest = arguments.longest_prompt
        given = arguments.prompts and file_prompts(asked, arguments.prompts, longest)
        record(asked, given or corpus_prompts(asked, longest=longest), arguments.count, arguments.output_len, folder,
               longest, f"of `{arguments.prompts.name}`" if arguments.prompts else None)  # fmt: skip
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    if facts.get("layers") != list(layers):
        save_states(folder, asked, layers)
    recording = Recording(folder)
    vocabulary = common_tokens(recording, arguments.draft_vocabulary)
    print(f"the draft vocabulary holds {covered(recording, vocabulary):.2%} of the answers' tokens", flush=True)
    plan = Plan(arguments.passes, arguments.rows)
    torch.manual_seed(plan.seed)
    recipe = Eagle3Recipe(teacher_of(target, layers), vocabulary, taps, arguments.steps)
    fit(recipe, recording, plan, out)
    found = evaluate(target, "eagle3", str(out), k=arguments.k, max_tokens=arguments.output_len,
                     per_category=arguments.held_out, prompt_set=arguments.held_out_set)  # fmt: skip
    (out / "evaluation.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    write_card(out, facts, command(sys.argv[1:]))
    print(f"mean acceptance length at k = {arguments.k}: {found['mean_acceptance_length']}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--recording", type=Path, help="keep answers and states here, and use what is there")
    parser.add_argument("--recording-dtype", choices=("float32", "bfloat16"), default="float32",
                        help="of the target while it answers; bfloat16 is the faster one")  # fmt: skip
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="JSONL of conversations instead of the corpus")
    parser.add_argument("--count", type=int, default=4000, help="prompts to answer")
    parser.add_argument("--output-len", type=int, default=128)
    parser.add_argument("--longest-prompt", type=int, default=256)
    parser.add_argument("--draft-vocabulary", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=5, help="guesses in a row that are trained")
    parser.add_argument("--passes", type=float, default=2.0)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--k", type=int, default=3, help="drafted tokens a step in the evaluation")
    parser.add_argument("--held-out", type=int, help="held-out prompts of each category [all]")
    parser.add_argument("--held-out-set", choices=tuple(SETS), default=TEXT_SET, help="which bundled bench prompts")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train(arguments)


if __name__ == "__main__":
    main()
