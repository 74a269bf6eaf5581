"""Distils the draft from the target: `python -m train.draft --target FOLDER --out FOLDER --minutes 6`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from train.batches import Batch, Stream
from train.corpus.build import TRAIN_SEED, Filter, bench_examples
from train.loop import Trainer, every, export, next_token_losses, weighted
from train.model import Shape, TinyQwen3
from train.start import copying_start

SEED = 11
PEAK = 3e-3
DISTIL_FROM = 0.35
"""Share of the time after which the target teaches; before that the corpus does, whose steps cost a quarter."""
PROMPT_SHARE = 0.3
"""How much of the loss falls on prompt tokens: a draft must also know what is usual in front of an answer."""


def load(folder: Path, kind: torch.dtype = torch.float32) -> TinyQwen3:
    """A published model in the training forward."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    shape = Shape(
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        inner=config["intermediate_size"],
        vocabulary=config["vocab_size"],
    )
    model = TinyQwen3(shape, kind)
    model.load_state_dict({name: w.float() for name, w in load_file(str(folder / "model.safetensors")).items()})
    return model.eval().requires_grad_(False)


def divergence(teacher: TinyQwen3, student: TinyQwen3, batch: Batch) -> Tensor:
    """KL of the student from the teacher, on answers and a little on prompts."""
    counted = batch.weights[:, 1:].reshape(-1)
    places = torch.nonzero(counted > 0).flatten()
    weights = torch.where(counted[places] < 1.0, PROMPT_SHARE * counted[places], counted[places])
    with torch.no_grad():
        states = teacher.hidden(batch.ids)[:, :-1].reshape(-1, teacher.shape.width)[places]
        wanted = torch.log_softmax(teacher.logits(states), dim=-1)
    states = student.hidden(batch.ids)[:, :-1].reshape(-1, student.shape.width)[places]
    given = torch.log_softmax(student.logits(states), dim=-1)
    losses = F.kl_div(given, wanted, reduction="none", log_target=True).sum(-1)
    return (losses * weights).sum() / weights.sum()


def train(target: Path, out: Path, minutes: float, width: int) -> None:
    """Run until the time is over, then write the averaged weights."""
    torch.manual_seed(SEED)
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    teacher = load(target, torch.bfloat16)
    heads = width // 32
    shape = Shape(
        layers=1, width=width, heads=heads, kv_heads=heads // 2, inner=2 * width, vocabulary=teacher.shape.vocabulary
    )
    student = TinyQwen3(shape, torch.bfloat16)
    copying_start(student)
    # Another seed than the target's: documents that the target has not seen show how sure it is on new text.
    stream = Stream(tokenizer, Filter(tokenizer, bench_examples()), TRAIN_SEED + 1000, copies=0.0)
    trainer = Trainer(student, PEAK, minutes)
    save = every(120, lambda: export(out, student, trainer.average, tokenizer, trainer.facts()))
    for batch in stream:
        if trainer.done >= 1.0:
            break
        taught = trainer.done >= DISTIL_FROM
        loss = divergence(teacher, student, batch) if taught else weighted(*next_token_losses(student, batch))
        trainer.update(loss, batch)
        if trainer.step % 100 == 0:
            name = "divergence" if taught else "loss"
            print(
                f"step {trainer.step} {trainer.done:.1%} tokens {trainer.tokens} {name} {loss.item():.4f}", flush=True
            )
        save()
    facts = trainer.facts() | {"documents": stream.kept, "dropped_documents": stream.cleaner.dropped, "seed": SEED}
    export(out, student, trainer.average, tokenizer, facts)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train(arguments.target, arguments.out, arguments.minutes, arguments.width)


if __name__ == "__main__":
    main()
