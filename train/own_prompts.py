"""Prompts that a chat model writes itself, so that a head learns from more than the corpus.

`python -m train.own_prompts TARGET --out FILE`: given a chat template up to where the user speaks, a chat model goes on
with what users ask (Magpie, arXiv 2406.08464). Prompts of the corpus may come first; `train.eagle3 --prompts` reads the
file. No prompt shares a run of 12 tokens with a bundled bench prompt.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from specctl.resources import bundled_dir
from specctl.runtime import EngineOptions, Request, SamplingParams, Target, load_target, make_engine
from train.corpus.build import conversations, runs
from train.recording import PROMPT_SEED

SEQUENCES = 48
MARK = "~here the user speaks~"
SHORTEST = 12
Messages = list[dict[str, str]]


def turn(target: Target) -> tuple[str, str]:
    """The rendered chat up to where the user speaks, and what follows the user's words."""
    ask = [{"role": "user", "content": MARK}]
    text = str(target.tokenizer.apply_chat_template(ask, tokenize=False, add_generation_prompt=True))
    before, _, behind = text.partition(MARK)
    return before, behind.strip().splitlines()[0]


def own(target: Target, count: int, seed: int = 1, max_tokens: int = 64) -> Iterator[str]:
    """What the target asks for in a user's place, sampled at temperature 1; unfinished ones are left out."""
    before, end = turn(target)
    ids = target.tokenizer(before, add_special_tokens=False)["input_ids"]
    length = len(ids) + max_tokens + 1
    engine = make_engine(
        target, None, EngineOptions(max_num_seqs=SEQUENCES, max_model_len=length, max_num_batched_tokens=8 * SEQUENCES)
    )
    made: dict[str, list[int]] = {str(i): [] for i in range(count)}
    stops = tuple(target.tokenizer(end, add_special_tokens=False)["input_ids"][:1])
    for i in range(count):
        sampling = SamplingParams(
            temperature=1.0, top_p=0.95, seed=seed + i, max_tokens=max_tokens, stop_token_ids=stops
        )
        engine.add(Request(str(i), ids, sampling))
    while engine.has_work():
        for emission in engine.step():
            made[emission.request_id] += emission.token_ids
            if emission.finish_reason == "stop":
                text = target.decode(made[emission.request_id]).strip()
                if len(text) >= SHORTEST:
                    yield text


def bench_runs(target: Target) -> set[tuple[int, ...]]:
    """The runs of 12 tokens of all bundled bench prompts."""
    found: set[tuple[int, ...]] = set()
    for file in bundled_dir().glob("prompts*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            found |= runs(
                _ids(target, [{"role": "user", "content": m["content"]} for m in json.loads(line)["messages"]])
            )
    return found


def _ids(target: Target, messages: Messages) -> list[int]:
    ids: list[int] = []
    for message in messages:
        ids += target.tokenizer(message["content"], add_special_tokens=False)["input_ids"]
    return ids


def prompts(target: Target, corpus: int, count: int) -> Iterator[Messages]:
    """`corpus` conversations of the corpus, then what is left of `count` of the target's own."""
    forbidden = bench_runs(target)

    def clean(messages: Messages) -> bool:
        return forbidden.isdisjoint(runs(_ids(target, messages)))

    talks: Iterator[Any] = (
        [*history, {"role": "user", "content": example.prompt}] for history, example in conversations(PROMPT_SEED)
    )
    yield from islice(filter(clean, talks), corpus)
    yield from filter(clean, ([{"role": "user", "content": text}] for text in own(target, count)))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--corpus", type=int, default=0, help="prompts of the corpus, first")
    parser.add_argument("--count", type=int, default=500, help="prompts of its own to begin")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    target = load_target(arguments.target, dtype=arguments.dtype)
    rows = [json.dumps({"messages": each}) for each in prompts(target, arguments.corpus, arguments.count)]
    arguments.out.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} prompts")


if __name__ == "__main__":
    main()
