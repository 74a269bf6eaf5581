"""What coupled sampling costs in acceptance: the same drafts judged by rejection sampling and by coupling.

    python benchmarks/coupled.py            # the table of docs/verification.md

Requests, seeds and drafts' settings are the same in both columns; mean acceptance lengths over all drafts.
"""

from __future__ import annotations

import argparse

from specctl.bench.workloads import encode, read_workload
from specctl.runtime import EngineOptions, Request, SamplingParams, Target, load_target, make_engine
from specctl.spec.config import Acceptance, SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel, Method, Ngram

TREE = Tree(choices=((0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0)))
ROWS: tuple[tuple[str, Method, str | None, str, Tree | None], ...] = (
    ("n-gram", Ngram(2, 4), None, "greedy", None),
    ("draft model, picked", DraftModel(), "demo-draft", "greedy", None),
    ("draft model, drawn", DraftModel(), "demo-draft", "probabilistic", None),
    ("draft model, drawn, tree of 7", DraftModel(), "demo-draft", "probabilistic", TREE),
)


def length(target: Target, spec: SpecDecodeConfig, temperature: float, prompts: list[list[int]]) -> float:
    """Mean acceptance length over ``prompts``."""
    engine = make_engine(target, spec, EngineOptions(8))
    for i, prompt in enumerate(prompts):
        engine.add(Request(f"{i}", prompt, SamplingParams(temperature=temperature, seed=i, max_tokens=96)))
    while engine.has_work():
        engine.step()
    return engine.stats.mean_acceptance_length or 1.0


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--num-prompts", type=int, default=32)
    target = load_target("demo", device="cpu", dtype="float32")
    count = options.parse_args().num_prompts
    prompts = [list(prompt.token_ids) for prompt in encode(read_workload(), target).prompts][:count]
    print("| draft, k = 3 | temperature | rejection sampling | coupled | share kept |")
    print("| --- | --- | --- | --- | --- |")
    for name, method, model, how, tree in ROWS:
        for temperature in (0.5, 1.0):
            found = []
            for way in ("standard", "coupled"):
                spec = SpecDecodeConfig(
                    method, 3, model, draft_sample_method=how, tree=tree, acceptance=Acceptance(way)
                )
                found.append(length(target, spec, temperature, prompts))
            kept = (found[1] - 1) / (found[0] - 1)
            print(f"| {name} | {temperature} | {found[0]:.2f} | {found[1]:.2f} | {100 * kept:.0f} % |")


if __name__ == "__main__":
    main()
