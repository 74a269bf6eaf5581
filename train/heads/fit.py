"""The training loop of all heads: so many passes over the recording, averaged weights, a checkpoint at the end."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from train.heads.batches import Recording
from train.heads.recipe import Recipe

WARM_UP = 50
DECAY_FROM = 0.3


@dataclass(frozen=True)
class Plan:
    """`passes` over the training answers, `rows` of them a step."""

    passes: float
    rows: int = 8
    seed: int = 17


def rate(step: int, total: int) -> float:
    """Share of the peak learning rate: a warm-up, flat, then a line down."""
    done = step / total
    down = 1.0 if done < DECAY_FROM else (1.0 - done) / (1.0 - DECAY_FROM)
    return min(1.0, (step + 1) / WARM_UP) * (0.02 + 0.98 * down)


class Fit:
    """One head's optimiser and averaged weights."""

    def __init__(self, recipe: Recipe, total: int) -> None:
        self.recipe, self.total = recipe, total
        groups: list[dict[str, Any]] = [
            {"params": [p for p in recipe.parameters() if p.ndim > 1], "weight_decay": 0.02},
            {"params": [p for p in recipe.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.peak, betas=(0.9, 0.95), fused=True)
        self.average = {name: p.detach().clone() for name, p in recipe.named_parameters()}
        self.step = 0

    def update(self, loss: Tensor) -> None:
        """One step of the optimiser and of the averaged weights."""
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.recipe.parameters(), 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.peak * rate(self.step, self.total)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        share = min(self.recipe.average, (self.step + 1) / (self.step + 10))
        with torch.no_grad():
            for name, weight in self.recipe.named_parameters():
                self.average[name].lerp_(weight, 1 - share)


def fit(recipe: Recipe, recording: Recording, plan: Plan, out: Path) -> None:
    """Train and write the checkpoint."""
    torch.manual_seed(plan.seed)
    rng = Random(plan.seed)
    begun = time.monotonic()
    total = int(plan.passes * (len(recording.train) // plan.rows))
    run, tokens = Fit(recipe, total), 0
    while run.step < total:
        for places in recording.epoch(rng, plan.rows):
            batch = recording.batch(places)
            recipe.progress = run.step / total
            loss = recipe.loss(batch)
            run.update(loss)
            tokens += batch.tokens
            if run.step % 100 == 0:
                passed = time.monotonic() - begun
                print(f"{recipe.method} {run.step}/{total} loss {loss.item():.4f} {passed:.0f} s", flush=True)
            if run.step >= total:
                break
    facts = {
        "method": recipe.method,
        "target": recipe.teacher.name,
        "steps": run.step,
        "tokens_seen": tokens,
        "passes": plan.passes,
        "recording_tokens": recording.size(recording.train),
        "seconds": round(time.monotonic() - begun, 1),
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "seed": plan.seed,
        "parameters": sum(p.numel() for p in recipe.parameters()),
    }
    save(recipe, run.average, facts, out)


def machine() -> str:
    """The kind of processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores"


def save(recipe: Recipe, weights: dict[str, Tensor], facts: dict[str, Any], out: Path) -> None:
    """config.json, model.safetensors in float16, training.json."""
    out.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: (w.detach().to(torch.float16) if w.is_floating_point() else w).contiguous()
        for name, w in recipe.tensors(weights).items()
    }
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    for name, content in (("config.json", recipe.config()), ("training.json", facts)):
        (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
