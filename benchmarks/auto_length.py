"""`--speculation auto` against plain decoding and the best fixed draft length, on the demo target.

    python -m benchmarks.auto_length [--repeats 5] [--prompts 4] [--tokens 48] [--methods draft_model,eagle3]

Draft model and EAGLE-3, concurrency 1, 4 and 16, each category of prompts by itself at concurrency 1. All take turns
over the same prompts (see `specctl.bench.session`). The tokens that a second gives are compared repeat by repeat; the
interval is that of the mean logarithm of the ratio, with Student's factor. In each cell auto knows nothing but the
warm-up, a few short requests that are not measured. Ends with 1 where an interval lies wholly beyond 5 % slower than
plain or 15 % slower than the best fixed length (the best of the same runs, so its advantage is overstated).
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from specctl.bench.load import EngineRunner
from specctl.bench.noise import student
from specctl.bench.records import Block, Runner
from specctl.bench.session import Measured, Schedule, measure
from specctl.bench.workloads import DEMO_SET, Workload, choose, encode, read_workload
from specctl.runtime import EngineOptions, SamplingParams, Target, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS

METHODS_TRIED = {"draft_model": "demo-draft", "eagle3": "demo-eagle3"}
FIXED = (1, 2, 4, 6)
CONCURRENCY = (1, 4, 16)
BARS = {"plain": 0.95, "best fixed": 0.85}
PLAIN, AUTO = "plain", "auto"
# Short requests a runner and cell before anything counts.
WARMUP = 4


@dataclass(frozen=True)
class Ratio:
    """Auto's tokens a second over another's, with the 95 % interval; ``bar``: what the interval may not lie below."""

    method: str
    cell: str
    other: str
    ratio: float
    low: float
    high: float
    bar: float

    @property
    def holds(self) -> bool:
        return self.high >= self.bar


class Silent:
    """No progress bar; the lines of the result are enough."""

    def start(self, total: int) -> None:
        """See `specctl.bench.session.Progress`."""

    def advance(self, done: int, doing: str) -> None:
        """See `specctl.bench.session.Progress`."""

    def seen(self, runner: Runner, concurrency: int, block: Block) -> None:
        """See `specctl.bench.session.Progress`."""


def runners(target: Target, method: str, options: EngineOptions) -> list[EngineRunner]:
    """Plain, auto up to the longest fixed length, and the fixed lengths."""
    spec = {k: SpecDecodeConfig(METHODS[method](), k, model=METHODS_TRIED[method]) for k in FIXED}
    measured = replace(options, measured_length=True)
    found = [EngineRunner(PLAIN, None, None, make_engine(target, None, options))]
    found.append(EngineRunner(AUTO, None, spec[max(FIXED)], make_engine(target, spec[max(FIXED)], measured)))
    return found + [EngineRunner(f"k = {k}", k, spec[k], make_engine(target, spec[k], options)) for k in FIXED]


def seconds_a_token(blocks: Sequence[Block]) -> float:
    """Seconds behind the first tokens of all requests, over the tokens that came in them."""
    records = [record for block in blocks for record in block.records]
    spent = sum((record.last_token_s or 0.0) - (record.first_token_s or 0.0) for record in records)
    return spent / sum(len(record.token_ids) - 1 for record in records)


def compared(method: str, cell: str, times: dict[str, list[float]]) -> list[Ratio]:
    """Auto against plain and the best fixed length, from seconds a token of each repeat."""
    best = min((name for name in times if name.startswith("k")), key=lambda name: statistics.fmean(times[name]))
    pairs = ((PLAIN, PLAIN, "plain"), (best, f"best fixed, {best}", "best fixed"))
    return [ratio(method, cell, told, times[name], times[AUTO], BARS[bar]) for name, told, bar in pairs]


def ratio(method: str, cell: str, other: str, theirs: Sequence[float], autos: Sequence[float], bar: float) -> Ratio:
    """The ratio of paired repeats and its interval."""
    logs = [math.log(their / own) for their, own in zip(theirs, autos, strict=True)]
    mean, spread = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    half = student(0.975, len(logs) - 1) * spread
    return Ratio(method, cell, other, math.exp(mean), math.exp(mean - half), math.exp(mean + half), bar)


def times_of(found: Measured, tried: Sequence[EngineRunner], level: int) -> dict[str, list[float]]:
    """Seconds a token of every runner, repeat by repeat."""
    times: dict[str, list[float]] = {}
    for place, runner in enumerate(tried):
        repeats = groupby(found.of(place, level), lambda block: block.records[0].job.repeat)
        times[runner.name] = [seconds_a_token(list(blocks)) for _, blocks in repeats]
    return times


def measured(method: str, target: Target, work: Workload, arguments: argparse.Namespace) -> Iterator[Ratio]:
    """All cells of one method, each with engines of its own: what auto learned elsewhere does not help it."""
    longest = max(len(prompt.token_ids) for prompt in work.prompts)
    sampling = SamplingParams(max_tokens=arguments.tokens, ignore_eos=True)
    cells = [(f"concurrency {level}", level, work) for level in CONCURRENCY]
    cells += [(name, 1, choose(work, [name])) for name in work.categories]
    for cell, level, prompts in cells:
        tried = runners(target, method, EngineOptions(level, longest + arguments.tokens + max(FIXED) + 1))
        count = max(arguments.prompts * len(prompts.categories), 2 * level)
        schedule = Schedule((level,), arguments.repeats, WARMUP, 0, sampling, num_prompts=count)
        yield from compared(method, cell, times_of(measure(schedule, prompts, tried, Silent()), tried, level))


def told(found: Ratio) -> str:
    """A line."""
    verdict = "holds" if found.holds else f"BEYOND {100 * (1 - found.bar):.0f} % slower"
    span = f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.method:12} {found.cell:16} {found.other:18} {span:24} {verdict}"


def main(words: Sequence[str]) -> int:
    """Measure and print; 1 where a bar does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=4, help="of each category, a repeat")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, help="of torch's kernels; its own choice without it")
    parser.add_argument("--methods", default=",".join(METHODS_TRIED), help="some of them")
    arguments = parser.parse_args(words)
    if arguments.repeats < 2:
        parser.error("an interval needs two repeats or more")
    if arguments.threads is not None:
        set_threads(arguments.threads)
    target = load_target("demo", device="cpu")
    work = encode(choose(read_workload(None, DEMO_SET)), target)
    all_hold = True
    for method in arguments.methods.split(","):
        for found in measured(method, target, work, arguments):
            print(told(found), flush=True)
            all_hold = all_hold and found.holds
    return int(not all_hold)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
