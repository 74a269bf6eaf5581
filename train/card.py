"""Writes the model cards; every figure in them is read from training.json, evaluation.json and the files themselves."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from train.corpus.build import BENCH_SEED, HELD_OUT_SEED, TRAIN_SEED

Figures = dict[str, Any]

FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja")

HEAD = """---
license: apache-2.0
language: en
library_name: transformers
---
# {name}

{what}

It is a toy for showing and testing speculative decoding, not an assistant: it knows the four kinds of task below,
copies names, numbers and code from its prompt, and often gets sums wrong. It was trained on
conversations of up to 288 tokens; {positions} positions are allowed.

## Data

Chat documents that `train/corpus` generates from word lists and sentence templates of its own (seed {train_seed}):
code writing and code edits, word problems, summaries, little pieces of writing. Nothing was downloaded. Bench prompts
(seed {bench_seed}) and held-out examples (seed {held_seed}) come from other seeds; of {documents} training documents
{shared} share a run of 12 tokens with a bench prompt ({dropped} that did were left out).

## Training

    python -m train.run

{training}
"""


def _training(facts: Figures) -> str:
    shape = facts["shape"]
    return (
        f"Qwen3 architecture, {shape['layers']} layers × {shape['width']}, {shape['heads']} heads × "
        f"{shape['head_dim']} "
        f"({shape['kv_heads']} for keys and values), inner width {shape['inner']}, vocabulary "
        f"{shape['vocabulary']}, tied "
        f"embedding.\n{facts['steps']} steps, {facts['tokens']} tokens, {facts['minutes']} minutes on two CPU "
        f"cores shared "
        f"with other work, seed {facts['seed']}. AdamW, bfloat16 products over float32 weights; published in float16."
    )


def _table(rows: list[list[str]]) -> str:
    head, *body = [" | ".join(row) for row in rows]
    rule = " | ".join("---" for _ in rows[0])
    return "\n".join(f"| {line} |" for line in [head, rule, *body])


def _files(folder: Path) -> str:
    rows = [["file", "bytes", "sha256"]]
    for path in [folder / "model.safetensors", *(folder / name for name in FILES)]:
        content = path.read_bytes()
        rows.append([path.name, str(len(content)), f"`{hashlib.sha256(content).hexdigest()}`"])
    return "## Files\n\n" + _table(rows)


def _acceptance(bench: Figures) -> str:
    rows = [["category", "draft model", "n-gram", "ends by EOS", "repeated 4-grams (mean / worst)"]]
    for name, row in bench["categories"].items():
        rows.append(_acceptance_row(name, row, f"{row['repeated_4grams_mean']:.3f} / {row['repeated_4grams_max']:.3f}"))
    rows.append(_acceptance_row("pooled", bench, ""))
    return (
        "## Acceptance on the bench prompts\n\nMean acceptance length, greedy, float32, k = 4 (n-gram: longest "
        "suffix of 2 "
        "to 4 tokens, earliest place). Worked out from the target's outputs; tokens beyond the end mark count as not "
        "accepted.\n\n" + _table(rows)
    )


def _acceptance_row(name: str, row: Figures, repeats: str) -> list[str]:
    lengths = [f"{row[m]['mean_acceptance_length']:.2f}" if m in row else "" for m in ("draft_model", "ngram")]
    return [name, *lengths, f"{row['ends_by_eos']:.1%}", repeats]


def _quality(figures: Figures) -> str:
    bits = figures["bits_per_byte"]
    rows = [
        ["held-out bits per byte", "this model", "5-gram (Kneser-Ney, same corpus)"],
        ["answers", f"{bits['model_answers']:.3f}", f"{bits['five_gram_answers']:.3f}"],
        ["whole conversations", f"{bits['model_all']:.3f}", f"{bits['five_gram_all']:.3f}"],
    ]
    slots = [["copied from the prompt", "right", "of", "share"]]
    for name, row in figures["slots"].items():
        slots.append([name, str(row["right"]), str(row["slots"]), f"{row['share']:.1%}"])
    loss = (
        f"Held-out answer loss: {bits['answer_loss_nats_per_token']:.4f} nats a token ({bits['documents']} documents)."
    )
    bars = [["bar", "met"], *([bar, "yes" if met else "no"] for bar, met in figures["bars"].items())]
    return f"## Quality\n\n{loss}\n\n{_table(rows)}\n\n{_table(slots)}\n\n{_table(bars)}"


def write_card(folder: Path, figures: Figures, what: str, *, is_target: bool) -> None:
    """README.md of one model."""
    facts = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    head = HEAD.format(
        name=folder.name,
        what=what,
        positions=config["max_position_embeddings"],
        train_seed=TRAIN_SEED if is_target else TRAIN_SEED + 1000,
        bench_seed=BENCH_SEED,
        held_seed=HELD_OUT_SEED,
        documents=facts["documents"],
        shared=figures["contamination"]["documents_sharing_a_run" if is_target else "draft_documents_sharing_a_run"],
        dropped=facts["dropped_documents"],
        training=_training(facts),
    )
    parts = [head, *([_quality(figures)] if is_target else []), _acceptance(figures["bench"]), _files(folder)]
    (folder / "README.md").write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
