"""What training of target and draft share: the optimiser, a schedule by wall clock, averaged weights, checkpoints."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from train.batches import Batch
from train.corpus.chat import END, PAD
from train.model import TinyQwen3
from train.tokenizer import save_tokenizer

AVERAGE = 0.998
WARM_UP = 50
DECAY_FROM = 0.5


def rate(step: int, done: float) -> float:
    """Share of the peak learning rate: warm-up by steps, flat, then a line down by the share of time that is gone."""
    down = 1.0 if done < DECAY_FROM else max(0.0, (1.0 - done) / (1.0 - DECAY_FROM))
    return min(1.0, (step + 1) / WARM_UP) * (0.02 + 0.98 * down)


class Trainer:
    """Runs steps until the time is over."""

    def __init__(self, model: TinyQwen3, peak: float, minutes: float) -> None:
        self.model, self.peak, self.seconds = model, peak, minutes * 60
        matrices = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim == 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": 0.05},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.95), fused=True)
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.step = self.tokens = 0
        self.begun = time.monotonic()

    @property
    def done(self) -> float:
        """Share of the time that is gone."""
        return (time.monotonic() - self.begun) / self.seconds

    def update(self, loss: Tensor, batch: Batch) -> None:
        """One step of the optimiser and of the averaged weights."""
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.peak * rate(self.step, self.done)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += batch.tokens
        share = min(AVERAGE, (self.step + 1) / (self.step + 10))
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                self.average[name].lerp_(weight, 1 - share)

    def facts(self) -> dict[str, Any]:
        """What the model card says about the run."""
        return {"steps": self.step, "tokens": self.tokens, "minutes": round((time.monotonic() - self.begun) / 60, 1),
                "shape": self.model.shape.as_dict()}  # fmt: skip


def compile_blocks(model: TinyQwen3) -> None:
    """Compile each layer, where a C++ compiler is at hand; the whole model would take minutes."""
    for block in model.blocks():
        block.compile(dynamic=False)


def half(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights as they are published."""
    return {name.replace("._orig_mod", ""): w.detach().to(torch.float16).contiguous() for name, w in weights.items()}


def export(
    folder: Path, model: TinyQwen3, weights: dict[str, Tensor], tokenizer: Tokenizer, facts: dict[str, Any]
) -> None:
    """Write a folder that transformers loads; first beside its place, so that a reader never sees half of it."""
    fresh = folder.with_name(f".{folder.name}.fresh")
    fresh.mkdir(parents=True, exist_ok=True)
    eos, pad = int(tokenizer.token_to_id(END) or 0), int(tokenizer.token_to_id(PAD) or 0)
    _write_json(fresh / "config.json", model.shape.config(eos, pad))
    _write_json(fresh / "generation_config.json", {"eos_token_id": eos, "pad_token_id": pad, "do_sample": False})
    save_tokenizer(tokenizer, fresh)
    save_file(half(weights), str(fresh / "model.safetensors"), metadata={"format": "pt"})
    _write_json(fresh / "training.json", facts)
    folder.mkdir(parents=True, exist_ok=True)
    for made in sorted(fresh.iterdir()):
        made.chmod(0o644)
        os.replace(made, folder / made.name)
    fresh.rmdir()


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """Mean by weight."""
    return (losses * weights).sum() / weights.sum().clamp_min(1e-6)


def next_token_losses(model: TinyQwen3, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cross-entropy of each next token, and its weight."""
    states = model.hidden(batch.ids)[:, :-1]
    scores = model.logits(states.reshape(-1, model.shape.width))
    losses = F.cross_entropy(scores, batch.ids[:, 1:].reshape(-1), reduction="none")
    return losses, batch.weights[:, 1:].reshape(-1)


def every(seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    """Call the action when at least so many seconds have passed since it last ran."""
    last = time.monotonic()

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            action()
            last = time.monotonic()

    return maybe
