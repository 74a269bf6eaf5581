"""Every method with every target, shape of draft, batch and number of accepted tokens: greedy text in float64 is that
of plain decoding. The ordinary tests take each pair of values once; all combinations:

    python -m tests.runtime.grid
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from specctl.runtime import Engine, EngineOptions, Request, Target, load_target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.models.flat import load_flat
from specctl.runtime.models.hf import load_adapted
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS, DraftModel, Method, Ngram, Pard, Suffix
from tests.runtime.eagle_heads import eagle, eagle3, peagle
from tests.runtime.head_parts import MadeHead
from tests.runtime.kit import ask, build, run
from tests.runtime.mtp_heads import mtp
from tests.runtime.other_heads import dflash, medusa, mlp_speculator
from tests.runtime.tree_kit import DEPTH, DYNAMIC, STATIC, bushy, taught

MASK = 257
# Layers that every kind of target can show.
TAPS = (2, 1, 0)
HEADS: dict[str, Callable[[Target, Path], MadeHead]] = {
    "eagle": eagle,
    "eagle3": lambda target, folder: eagle3(target, folder, taps=TAPS),
    "peagle": lambda target, folder: peagle(target, folder, TAPS),
    "mtp": lambda target, folder: mtp(target, folder, "deepseek_v3"),
    "medusa": lambda target, folder: medusa(target, folder, "vllm"),
    "mlp_speculator": mlp_speculator,
    "dflash": lambda target, folder: dflash(target, folder, taps=(1, 2)),
}
ONE, EIGHT = "batch of 1", "mixed batch of 8"
OWN = "own"  # drafts as the method makes them; a number: that many of each draft are right


class Case(NamedTuple):
    """One cell of the grid."""

    method: str
    model: str
    shape: str
    batch: str
    accepted: int | str


AXES: dict[str, Sequence[Any]] = {
    "method": ("ngram", "suffix", "draft_model", "pard", *HEADS),
    "model": ("native", "adapter", "flat"),
    "shape": ("chain", "static tree", "dynamic tree"),
    "batch": (ONE, EIGHT),
    "accepted": (OWN, *range(DEPTH + 1)),
}


def all_cases() -> list[Case]:
    """The cross product. Prediction layers of a flat target are of its own kind of layer: `test_families` has those."""
    cases = [Case(*values) for values in itertools.product(*AXES.values())]
    return [case for case in cases if (case.method, case.model) != ("mtp", "flat")]


def pairwise_cases() -> list[Case]:
    """Cases that hold each pair of values of two axes at least once; chosen greedily, always the same ones."""
    left = {pair for case in all_cases() for pair in _pairs(case)}
    chosen = []
    candidates = all_cases()
    random.Random(5).shuffle(candidates)
    while left:
        best = max(candidates, key=lambda case: len(left.intersection(_pairs(case))))
        left.difference_update(_pairs(best))
        chosen.append(best)
    return chosen


def _pairs(case: Case) -> Iterable[tuple[tuple[int, Any], tuple[int, Any]]]:
    return itertools.combinations(enumerate(case), 2)


class Forced:
    """A proposer whose drafts are made right up to ``accepted`` tokens (`OWN`: left alone). Where the method drafts no
    trees of its own, ``bush`` makes one of its chain.
    """

    def __init__(self, proposer: Any, truth: dict[str, list[int]], accepted: int | str, bush: bool) -> None:
        self._proposer = proposer
        self._truth = truth
        self._accepted = accepted
        self._bush = bush
        self._dice = random.Random(2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    @property
    def num_draft_tokens(self) -> int:
        return int(self._proposer.num_draft_tokens) * (2 if self._bush else 1)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        drafts = self._proposer.propose(sequences, limits)
        drafts = [bushy(draft) for draft in drafts] if self._bush else drafts
        if self._accepted == OWN:
            return drafts
        return [self._teach(sequence, draft) for sequence, draft in zip(sequences, drafts, strict=True)]

    def _teach(self, sequence: Any, draft: Draft) -> Draft:
        right = self._truth[sequence.request.id][sequence.num_output :]
        return taught(draft, right, int(self._accepted), self._dice)


@dataclass(frozen=True)
class Bench:
    """A folder for checkpoints, and what is made there once."""

    folder: Path

    @cache  # noqa: B019 – lives as long as the process
    def target(self, model: str) -> Target:
        base = self.folder / "llama"
        if not base.exists():
            build("llama", base)
        target = load_target(str(base), device="cpu", dtype="float64")
        load = {"adapter": load_adapted, "flat": load_flat}.get(model)
        return replace(target, model=load(base, torch.float64, torch.device("cpu"))) if load else target

    @cache  # noqa: B019
    def draft(self, method: str) -> tuple[Method, Path | None]:
        if method in HEADS:
            torch.manual_seed(list(HEADS).index(method))
            made = HEADS[method](self.target("native"), self.folder / method)
            return made.method, made.folder
        if method == "ngram":
            return Ngram(1, 3), None
        if method == "suffix":
            return Suffix(min_token_prob=0.0, max_spec_factor=2.0), None
        stranger = self.folder / "stranger"
        if not stranger.exists():
            build("llama", stranger, seed=1)
        if method == "draft_model":
            return DraftModel(), stranger
        folder = self.folder / "pard"
        shutil.copytree(stranger, folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"pard_token": MASK}))
        return Pard(), folder

    @cache  # noqa: B019
    def truth(self, model: str) -> dict[str, list[int]]:
        """What plain decoding says, longer than any request asks for."""
        asked = [ask(name, prompt, max_tokens=40, ignore_eos=True) for name, prompt in PROMPTS.items()]
        results = run(Engine(self.target(model), None, EngineOptions(8)), asked)
        return {name: result["tokens"] for name, result in results.items()}

    @cache  # noqa: B019
    def plain(self, model: str, batch: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for request in self.requests(model, batch):
            found |= run(Engine(self.target(model), None, EngineOptions(1)), [request])
        return found

    def requests(self, model: str, batch: str) -> list[Request]:
        """One request, or eight of different lengths and ends."""
        truth = self.truth(model)
        text = bytes(token for token in truth["text"][4:7] if token < 256).decode("utf-8", "replace")
        ends: dict[str, dict[str, Any]] = {
            "one": {"max_tokens": 9},
            "repeats": {"max_tokens": 24},
            "long": {"stop_token_ids": (truth["long"][7],)},
            "text": {"stop": (text,)},
            "edge": {"max_tokens": 40},
            "early": {"max_tokens": 1},
            "penalised": {"max_tokens": 12, "frequency_penalty": 0.0, "min_tokens": 3},
            "last": {"max_tokens": 17, "stop_token_ids": (truth["last"][15],)},
        }
        chosen = ["repeats"] if batch == ONE else list(PROMPTS)
        return [ask(name, PROMPTS[name], ignore_eos=True, **ends[name]) for name in chosen]


PROMPTS = {
    "one": [97],
    "repeats": list(b"abcabcabcabc"),
    "long": [random.Random(5).randrange(256) for _ in range(45)],
    "text": list("naïve café – 日本".encode()),
    "edge": [random.Random(6).randrange(256) for _ in range(88)],
    "early": list(b"early"),
    "penalised": list(b"again and again"),
    "last": [random.Random(7).randrange(256) for _ in range(5)],
}


def check(bench: Bench, case: Case) -> None:
    """Raises AssertionError where a text differs, or where a forced number of tokens was never accepted."""
    method, folder = bench.draft(case.method)
    trees = {"static tree": STATIC, "dynamic tree": DYNAMIC}
    own = METHODS[method.name].drafts_trees and case.method != "peagle"
    tree = trees.get(case.shape) if own else None
    spec = SpecDecodeConfig(method, DEPTH, model=folder and str(folder), tree=tree)
    slots = 1 if case.batch == ONE else 5
    engine = make_engine(bench.target(case.model), spec, EngineOptions(slots, None, 23))
    forced: Any = Forced(
        engine._drafting.proposer, bench.truth(case.model), case.accepted, case.shape != "chain" and not own
    )
    engine = Engine(engine.target, forced, EngineOptions(slots, None, 23))
    results = run(engine, bench.requests(case.model, case.batch))
    plain = bench.plain(case.model, case.batch)
    for name, result in results.items():
        assert result | {"stats": None} == plain[name] | {"stats": None}, (case, name)
    if isinstance(case.accepted, int):
        histogram = engine.stats.acceptance_length_histogram
        # Lookups draft fewer tokens where less follows a match, dynamic trees are not always deep.
        sure = case.method not in ("ngram", "suffix") and case.shape != "dynamic tree"
        assert not sure or histogram[case.accepted] > 0, (case, histogram)
        assert sum(histogram[case.accepted + 1 :]) == 0, (case, histogram)


def main() -> int:
    """Check all cases; the number that failed, at most 1."""
    torch.set_num_threads(1)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        cases = all_cases()
        for done, case in enumerate(cases, start=1):
            try:
                check(bench, case)
            except AssertionError as error:
                failed.append(f"{case}: {error}")
            if done % 100 == 0:
                print(f"{done} of {len(cases)}", file=sys.stderr)
    for line in failed:
        print(line)
    print(f"{len(cases) - len(failed)} of {len(cases)} combinations decode as plain decoding does")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
