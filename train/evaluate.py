"""Measures the bundled models on held-out data.

`python -m train.evaluate --target FOLDER --draft FOLDER --out FILE`
"""

from __future__ import annotations

import argparse
import json
import math
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from train.acceptance import Tally, by_model, by_ngram, simulate
from train.batches import BUCKETS, encode
from train.corpus.build import MAKERS, TRAIN_SEED, Document, Filter, bench_examples, documents, held_out, render
from train.corpus.words import Example
from train.draft import load
from train.generate import Generator
from train.model import TinyQwen3
from train.ngram_model import KneserNey

Figures = dict[str, Any]


def corpus(tokenizer: Tokenizer, kept: int, seed: int = TRAIN_SEED) -> tuple[list[list[int]], int]:
    """The documents that the target was trained on, made again, and how many share a run with a bench prompt."""
    cleaner = Filter(tokenizer, bench_examples())
    found: list[list[int]] = []
    for document in documents(seed):
        front, answer = encode(tokenizer, document)
        ids = front + answer
        if cleaner.clean(ids) and len(ids) <= BUCKETS[-1]:
            found.append(ids)
        if len(found) == kept:
            break
    fresh = Filter(tokenizer, bench_examples())
    shared = sum(not fresh.clean(ids) for ids in found)
    return found, shared


@torch.no_grad()
def surprise(model: TinyQwen3, front: list[int], answer: list[int]) -> tuple[float, float]:
    """Bits of the prompt (after its first token) and of the answer."""
    ids = torch.tensor([front + answer])
    scores = torch.log_softmax(model(ids)[0, :-1], dim=-1)
    bits = -scores.gather(1, ids[0, 1:, None]).flatten() / math.log(2)
    return float(bits[: len(front) - 1].sum()), float(bits[len(front) - 1 :].sum())


def bits_per_byte(model: TinyQwen3, tokenizer: Tokenizer, train: list[list[int]], docs: list[Document]) -> Figures:
    """Model and 5-gram, on whole conversations and on answers alone."""
    rows = [encode(tokenizer, d) for d in docs]
    sizes = [(len(d.prompt.encode()), len(d.answer.encode())) for d in docs]
    answer_bytes, all_bytes = sum(s[1] for s in sizes), sum(sum(s) for s in sizes)
    own = [surprise(model, front, answer) for front, answer in rows]
    yard = KneserNey(train, tokenizer.get_vocab_size())
    bits = -np.log2(yard.probabilities([front + answer for front, answer in rows]))
    answers, everything, at = 0.0, 0.0, 0
    for front, answer in rows:
        # The first token is given to both.
        everything += float(bits[at + 1 : at + len(front) + len(answer)].sum())
        answers += float(bits[at + len(front) : at + len(front) + len(answer)].sum())
        at += len(front) + len(answer)
    tokens = sum(len(answer) for _, answer in rows)
    return {
        "documents": len(docs),
        "answer_loss_nats_per_token": sum(b for _, b in own) * math.log(2) / tokens,
        "model_answers": sum(b for _, b in own) / answer_bytes,
        "five_gram_answers": answers / answer_bytes,
        "model_all": sum(a + b for a, b in own) / all_bytes,
        "five_gram_all": everything / all_bytes,
    }


def slots_right(example: Example, text: str) -> tuple[int, int]:
    """How many pieces of the prompt stand in the output: code lines in order, names and numbers whole."""
    if example.kind == "edit":
        lines, at, right = [line.strip() for line in text.splitlines()], 0, 0
        wanted = [slot for slot in example.slots if slot]
        for slot in wanted:
            if slot in lines[at:]:
                at += lines[at:].index(slot) + 1
                right += 1
        return right, len(wanted)
    whole = [rf"(?<!\w){re.escape(slot)}(?!\w)" for slot in example.slots]
    whole = [pattern for pattern in whole if re.search(pattern, example.answer)]
    return sum(bool(re.search(pattern, text)) for pattern in whole), len(whole)


def slot_accuracy(generator: Generator, examples: list[Example]) -> Figures:
    """By category, edits apart from written code."""
    counts: dict[str, list[int]] = {}
    for example, output in zip(examples, generator.answer(examples), strict=True):
        name = f"{example.category}-{example.kind}" if example.category == "coding" else example.category
        right, total = slots_right(example, generator.text(output))
        held = counts.setdefault(name, [0, 0])
        held[0] += right
        held[1] += total
    return {name: {"right": r, "slots": n, "share": r / max(1, n)} for name, (r, n) in sorted(counts.items())}


def repeats(output: list[int]) -> float:
    """Share of the 4-grams that stood earlier in the same output."""
    grams = [tuple(output[i : i + 4]) for i in range(len(output) - 3)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def bench_figures(generator: Generator, draft: TinyQwen3 | None, examples: list[Example]) -> Figures:
    """Ends, repeats and acceptance on the bench prompts, by category and pooled."""
    outputs = generator.answer(examples)
    end = generator.tokenizer.eos_token_id
    methods = {"ngram": by_ngram()} | ({"draft_model": by_model(draft)} if draft else {})
    figures: Figures = {"categories": {}}
    pooled = {name: Tally() for name in methods}
    for category in MAKERS:
        pairs = [(e, o) for e, o in zip(examples, outputs, strict=True) if e.category == category]
        row: Figures = {
            "prompts": len(pairs),
            "ends_by_eos": sum(o[-1] == end for _, o in pairs) / len(pairs),
            "mean_tokens": sum(len(o) for _, o in pairs) / len(pairs),
            "repeated_4grams_mean": sum(repeats(o) for _, o in pairs) / len(pairs),
            "repeated_4grams_max": max(repeats(o) for _, o in pairs),
        }
        for name, propose in methods.items():
            tally = Tally()
            for example, output in pairs:
                tally.add(simulate(generator.prompt_ids(example), output, propose))
            row[name] = {"mean_acceptance_length": tally.length, "mean_acceptance_length_all_steps": tally.length_all}
            pooled[name].add(tally)
        figures["categories"][category] = row
    figures["ends_by_eos"] = sum(o[-1] == end for o in outputs) / len(outputs)
    for name, tally in pooled.items():
        figures[name] = {"mean_acceptance_length": tally.length, "mean_acceptance_length_all_steps": tally.length_all}
    figures["longest_prompt"] = max(len(generator.prompt_ids(e)) for e in examples)
    return figures


def bars(figures: Figures) -> dict[str, bool]:
    """The quality that is asked for."""
    slots, bench, bits = figures["slots"], figures["bench"], figures["bits_per_byte"]
    quiet = [row["repeated_4grams_max"] for name, row in bench["categories"].items() if name != "coding"]
    return {
        "held-out bits per byte below the 5-gram's": bits["model_all"] < bits["five_gram_all"]
        and bits["model_answers"] < bits["five_gram_answers"],
        "edits: at least 90 % of the slots right": slots["coding-edit"]["share"] >= 0.9,
        "summaries: at least 90 % of the slots right": slots["summarization"]["share"] >= 0.9,
        "outside coding at most 20 % of an output's 4-grams repeat": max(quiet) <= 0.2,
        "at least 80 % of the outputs end by EOS": bench["ends_by_eos"] >= 0.8,
        "no bench prompt shares 12 tokens with the training data": figures["contamination"]["documents_sharing_a_run"]
        == 0,
        "draft, k = 4: acceptance length at least 2.5": bench.get("draft_model", {}).get("mean_acceptance_length", 0)
        >= 2.5,
    }


def evaluate(target: Path, draft: Path | None, limit: int | None) -> Figures:
    """All figures."""
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    facts = json.loads((target / "training.json").read_text(encoding="utf-8"))
    train, shared = corpus(tokenizer, min(facts.get("documents", 2000), limit or 10**9))
    contamination = {"documents": len(train), "documents_sharing_a_run": shared}
    if draft and not limit:
        kept = json.loads((draft / "training.json").read_text(encoding="utf-8"))["documents"]
        contamination["draft_documents_sharing_a_run"] = corpus(tokenizer, kept, TRAIN_SEED + 1000)[1]
    model, generator = load(target), Generator(target)
    examples = held_out(400)
    docs = [render([], e) for e in examples]
    figures: Figures = {
        "contamination": contamination,
        "bits_per_byte": bits_per_byte(model, tokenizer, train, docs),
        "slots": slot_accuracy(generator, examples),
        "bench": bench_figures(generator, load(draft) if draft else None, bench_examples()),
    }
    figures["bars"] = bars(figures)
    return figures


def show(generator: Generator, count: int = 1) -> None:
    """Print a few outputs to read."""
    for category in MAKERS:
        mine = list(islice((e for e in bench_examples() if e.category == category), 0, 3 * count, 3))
        for example, output in zip(mine, generator.answer(mine), strict=True):
            print(f"[{category}] {example.prompt}\n-->\n{generator.text(output)}\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=int, help="train the 5-gram on so many documents only")
    parser.add_argument("--show", type=int, default=0, help="print so many outputs of each category")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    if arguments.show:
        show(Generator(arguments.target), arguments.show)
    figures = evaluate(arguments.target, arguments.draft, arguments.limit)
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
