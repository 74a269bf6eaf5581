"""Trains the target: `python -m train.target --out FOLDER --minutes 45`."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from train.batches import BUCKETS, Batch, Stream, encode, stack
from train.corpus.build import TRAIN_SEED, Filter, bench_examples, held_out, render
from train.loop import Trainer, compile_blocks, every, export, next_token_losses, weighted
from train.model import Shape, TinyQwen3
from train.start import copying_start
from train.tokenizer import VOCABULARY, train_tokenizer

SEED = 7
COPY_STEPS = 200
COPY_SHARE = 0.08


def check_batches(tokenizer: Tokenizer, count: int = 128) -> list[Batch]:
    """Held-out answers."""
    rows = [encode(tokenizer, render([], example)) for example in held_out(count)]
    padded = [(front + answer, [0.0] * len(front) + [1.0] * len(answer)) for front, answer in rows]
    padded = [row for row in padded if len(row[0]) <= BUCKETS[-1]]
    return [stack(padded[i : i + 7], BUCKETS[-1], 0) for i in range(0, len(padded) - 6, 7)]


@torch.no_grad()
def check_loss(model: TinyQwen3, batches: list[Batch]) -> float:
    """Mean loss of held-out answer tokens."""
    parts = [next_token_losses(model, batch) for batch in batches]
    return float(weighted(torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])))


def swapped_loss(trainer: Trainer, batches: list[Batch]) -> float:
    """The held-out loss under the averaged weights."""
    own = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.model.load_state_dict(trainer.average)
    loss = check_loss(trainer.model, batches)
    trainer.model.load_state_dict(own)
    return loss


def train(out: Path, minutes: float, layers: int) -> None:
    """Pure copying first, then the mixture until the time is over."""
    torch.manual_seed(SEED)
    tokenizer = train_tokenizer()
    model = TinyQwen3(
        Shape(layers=layers, width=256, heads=8, kv_heads=4, inner=768, vocabulary=VOCABULARY), torch.bfloat16
    )
    copying_start(model)
    compile_blocks(model)
    stream = Stream(tokenizer, Filter(tokenizer, bench_examples()), TRAIN_SEED, COPY_SHARE)
    checks = check_batches(tokenizer)
    trainer = Trainer(model, 2e-3, minutes)
    save = every(120, lambda: export(out, model, trainer.average, tokenizer, trainer.facts()))
    mixture = iter(stream)
    for _ in range(8):
        next(mixture)
    while trainer.done < 1.0:
        batch = stream.copy_batch() if trainer.step < COPY_STEPS else next(mixture)
        loss = weighted(*next_token_losses(model, batch))
        trainer.update(loss, batch)
        if trainer.step % 100 == 0:
            held = check_loss(model, checks) if trainer.step % 500 == 0 else float("nan")
            print(f"step {trainer.step} {trainer.done:.1%} tokens {trainer.tokens} loss {loss.item():.3f} "
                  f"held-out {held:.4f} "
                  f"kept {stream.kept} dropped {stream.cleaner.dropped}", flush=True)  # fmt: skip
        save()
    raw, mean = check_loss(model, checks), swapped_loss(trainer, checks)
    print(f"held-out answer loss: last weights {raw:.4f}, averaged {mean:.4f}", flush=True)
    weights: dict[str, Tensor] = dict(model.named_parameters()) if raw < mean else trainer.average
    facts = trainer.facts() | {"documents": stream.kept, "dropped_documents": stream.cleaner.dropped, "seed": SEED}
    export(out, model, weights, tokenizer, facts)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train(arguments.out, arguments.minutes, arguments.layers)


if __name__ == "__main__":
    main()
