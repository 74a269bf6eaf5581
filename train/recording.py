"""What draft heads learn from: a target's own greedy answers, and its hidden states along them.

`python -m train.recording TARGET --out FOLDER` lets the target answer prompts of the corpus, none of which shares a run
of tokens with a bench prompt. The states are kept once, for all heads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from specctl.runtime import EngineOptions, Request, SamplingParams, Target, load_target, make_engine
from specctl.runtime.kv_cache import Span
from train.corpus.build import Filter, bench_examples, conversations

PROMPT_SEED = 43_001
SEQUENCES = 48
TOGETHER = 8
ANSWERS, STATES, FACTS = "answers.npz", "states.npy", "recording.json"


@dataclass(frozen=True)
class Answer:
    """Token ids of a prompt with its answer; `begin`: where the answer starts."""

    ids: list[int]
    begin: int


def corpus_prompts(target: Target, seed: int = PROMPT_SEED, longest: int = 192) -> Iterator[list[int]]:
    """Prompts of the corpus as the target's chat template renders them, cleaned of bench runs."""
    cleaner = Filter(target.tokenizer.backend_tokenizer, bench_examples())
    for history, example in conversations(seed):
        ids = target.encode_chat([*history, {"role": "user", "content": example.prompt}])
        if len(ids) <= longest and cleaner.clean(ids):
            yield ids


def answers(target: Target, prompts: Iterable[list[int]], max_tokens: int, longest: int) -> Iterator[Answer]:
    """Each prompt with the target's greedy answer, as they finish."""
    options = EngineOptions(
        max_num_seqs=SEQUENCES, max_model_len=longest + max_tokens + 1, max_num_batched_tokens=8 * SEQUENCES
    )
    engine = make_engine(target, None, options)
    running: dict[str, tuple[list[int], list[int]]] = {}
    waiting, number = iter(prompts), 0
    while True:
        for ids in islice(waiting, SEQUENCES - len(running)):
            running[str(number)] = (ids, [])
            engine.add(Request(str(number), ids, SamplingParams(max_tokens=max_tokens)))
            number += 1
        if not running:
            return
        for emission in engine.step():
            prompt, made = running[emission.request_id]
            made += emission.token_ids
            if emission.finish_reason is not None:
                del running[emission.request_id]
                yield Answer(prompt + made, len(prompt))


def save_answers(folder: Path, found: Sequence[Answer], facts: dict[str, Any]) -> None:
    """Write them with what is known about how they came about."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / ANSWERS,
        ids=np.concatenate([np.array(each.ids, dtype=np.int32) for each in found]),
        lengths=np.array([len(each.ids) for each in found], dtype=np.int32),
        begins=np.array([each.begin for each in found], dtype=np.int32),
    )
    facts = facts | {
        "answers": len(found),
        "tokens": sum(len(each.ids) for each in found),
        "answer_tokens": sum(len(each.ids) - each.begin for each in found),
    }
    (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def load_answers(folder: Path) -> list[Answer]:
    """What `save_answers` wrote."""
    held = np.load(folder / ANSWERS)
    ends = np.cumsum(held["lengths"])
    starts = ends - held["lengths"]
    ids, begins = held["ids"], held["begins"].tolist()
    return [Answer(ids[a:b].tolist(), begin) for a, b, begin in zip(starts, ends, begins, strict=True)]


@torch.inference_mode()
def save_states(folder: Path, target: Target, layers: Sequence[int]) -> None:
    """The states after `layers` (see `specctl.runtime.models.hidden`) of every token, in float16, beside the answers.

    A target in bfloat16 does this three times as fast, and its rounding is no more than the noise that heads must bear.
    """
    found = load_answers(folder)
    width = target.model.embedding.shape[1]
    total = sum(len(each.ids) for each in found)
    held = np.lib.format.open_memmap(folder / STATES, mode="w+", dtype=np.float16, shape=(total, len(layers) * width))
    cache = target.model.make_cache(TOGETHER, max(len(each.ids) for each in found))
    at = 0
    for first in range(0, len(found), TOGETHER):
        ids = [each.ids for each in found[first : first + TOGETHER]]
        flat = [token for row in ids for token in row]
        spans = [Span(slot, 0, len(row)) for slot, row in enumerate(ids)]
        _, states = target.model.forward_tapped(flat, spans, cache, [0], layers)
        held[at : at + len(flat)] = states.to(torch.float16).numpy()
        at += len(flat)
    held.flush()
    path = folder / FACTS
    facts = json.loads(path.read_text(encoding="utf-8")) | {"layers": list(layers), "states_dtype": target.dtype}
    path.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def record(
    target: Target,
    prompts: Iterable[list[int]],
    count: int,
    max_tokens: int,
    out: Path,
    longest: int,
    source: str | None = None,
) -> None:
    """Let the target answer `count` prompts; says how far it is. `source`: where the prompts are from, as a card says
    it; without one they are the corpus's.
    """
    begun, found = time.monotonic(), []
    for answer in answers(target, islice(prompts, count), max_tokens, longest):
        found.append(answer)
        if len(found) % 500 == 0:
            print(f"{len(found)} answers, {time.monotonic() - begun:.0f} s", flush=True)
    seconds = round(time.monotonic() - begun, 1)
    facts = {"target": target.name, "dtype": target.dtype, "max_tokens": max_tokens, "seconds": seconds}
    save_answers(out, found, facts | ({} if source is None else {"prompts": source}))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=9_344)
    parser.add_argument("--output-len", type=int, default=128)
    parser.add_argument("--longest-prompt", type=int, default=192)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    target = load_target(arguments.target)
    longest = arguments.longest_prompt
    prompts = corpus_prompts(target, longest=longest)
    record(target, prompts, arguments.prompts, arguments.output_len, arguments.out, longest)


if __name__ == "__main__":
    main()
