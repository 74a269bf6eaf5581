"""The report of a run as JSON: the shape of `bench --output-json`, format version 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from specctl.bench.advice import recommended, settings
from specctl.bench.bound import bound_figures
from specctl.bench.candidates import BASELINE
from specctl.bench.compare import Comparison, compare
from specctl.bench.conversation import num_requests
from specctl.bench.goodput import Promises, goodput
from specctl.bench.metrics import counters, ended_by, finished, repetition, run_figures
from specctl.bench.noise import BlockNoise, block_noise, paired_blocks
from specctl.bench.outputs import DIFFERENT, TieRule
from specctl.bench.records import Block, Runner
from specctl.bench.scrape import NO_COUNTERS
from specctl.bench.session import Measured, Schedule, uses_of_a_prompt
from specctl.bench.verdict import Verdict, judge
from specctl.bench.workloads import BUNDLED_PROMPTS, Workload
from specctl.planning.alarm import broken_draft, first_position

if TYPE_CHECKING:
    from specctl.runtime import SpecStats
    from specctl.spec.config import SpecDecodeConfig

FORMAT_VERSION = 1
MEMORY = ("kv_cache_bytes", "draft_weight_bytes", "draft_kv_cache_bytes")
DETAILS = ("input_lens", "output_lens", "ttfts", "latencies", "itls", "start_times", "request_ids")
Report = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What was asked for: the target's name and EOS tokens, the schedule, the prompts, the runners (baseline first).

    `promises`: the SLOs of goodput. `compared` False: one server alone was measured, so there is no baseline.
    `memory[place]`: bytes of a runner's KV cache and draft, where known.
    """

    target: str
    eos_token_ids: frozenset[int]
    schedule: Schedule
    workload: Workload
    runners: Sequence[Runner]
    promises: Promises = field(default_factory=dict)
    compared: bool = True
    memory: Mapping[int, Mapping[str, int | None]] = field(default_factory=dict)


def build_report(
    setup: Setup, measured: Measured, environment: Mapping[str, Any], ties: TieRule | None
) -> tuple[Report, SpecDecodeConfig | None]:
    """The whole report, and the setting that its verdict keeps. `ties` None: outputs were not to be checked."""
    if measured.interrupted:
        measured.trim()
    comparisons = compare_all(setup, measured, ties)
    drafts = {runner.name for runner in setup.runners if not _is_peer(runner)}
    names = {index: prompt.id for index, prompt in enumerate(setup.workload.prompts)}
    verdict = judge([row for row in comparisons if row.candidate in drafts], names)
    kept = chosen(setup, verdict)
    bounds = _bounds(setup, measured)
    report = {
        "format_version": FORMAT_VERSION,
        "environment": dict(environment),
        "workload": describe_workload(setup, measured),
        "runs": [_run(setup, measured, place, level) for level, place in _cells(setup)],
        "comparison": [row.as_dict() | bounds[row.candidate, row.k, row.concurrency] for row in comparisons],
        "verdict": verdict.as_dict() | {"settings": None if kept is None else settings(kept, _bounded(verdict))},
        "failures": failures(setup, measured),
        "notes": [*setup.workload.notes, *_block_notes(setup, measured)],
    }
    return (report if setup.schedule.capped else _free(report, setup)), kept


def _free(report: Report, setup: Setup) -> Report:
    """A report of requests that arrive by themselves: no level of concurrency was held, so none is named."""
    level, arrivals = setup.schedule.concurrency[0], setup.schedule.arrivals
    rate = None if arrivals is None else arrivals.request_rate
    where = "the trace's arrivals" if rate is None else f"{rate:g} requests a second"
    rows = [row | {"concurrency": None} for row in report["comparison"]]
    verdict = report["verdict"]
    text = verdict["text"].replace(f"concurrency {level}", where).replace(f" at {level}", f" at {where}")
    levels = [each | {"concurrency": None} for each in verdict["by_concurrency"]]
    free = verdict | {"keep_up_to_concurrency": None, "text": text, "by_concurrency": levels, "best_k": {}}
    return report | {"comparison": rows, "verdict": free}


def _is_peer(runner: Runner) -> bool:
    """Whether this is another runtime, measured beside the candidates; a server counts as a candidate."""
    return runner.spec is None and not getattr(runner, "server", None)


def chosen(setup: Setup, verdict: Verdict) -> SpecDecodeConfig | None:
    """The setting that the verdict keeps, schedule included; None where it keeps none, or its setting is unknown."""
    for runner in setup.runners:
        if verdict.candidate == (runner.name, runner.k) and runner.spec is not None and verdict.highest is not None:
            return recommended(runner.spec, verdict.plan, verdict.highest, setup.target)
    return None


def _bounded(verdict: Verdict) -> int | None:
    """The level above which the kept draft does not pay, where a higher one was tested."""
    level, highest = verdict.keep_up_to_concurrency, verdict.highest
    return level if level and highest is not None and level < highest else None


def failures(setup: Setup, measured: Measured) -> list[dict[str, Any]]:
    """Every request that failed, and why."""
    return [
        {
            "run": setup.runners[place].name,
            "k": setup.runners[place].k,
            "concurrency": level,
            "repeat": record.job.repeat,
            "request": record.job.name,
            "error": record.error,
        }
        for (place, level), blocks in measured.blocks.items()
        for block in blocks
        for record in block.records
        if record.failed
    ]


def _block_notes(setup: Setup, measured: Measured) -> list[str]:
    found = {
        f"{setup.runners[place].name}: {note}": None
        for (place, _), blocks in measured.blocks.items()
        for block in blocks
        for note in block.notes
        # Plain decoding has no counters about drafting, and should have none.
        if not (setup.compared and place == 0 and NO_COUNTERS in note)
    }
    return list(found)


def _cells(setup: Setup) -> list[tuple[int, int]]:
    """(concurrency, place of the runner) of everything that was to be measured."""
    return [
        (level, place)
        for level in setup.schedule.concurrency
        for place, runner in enumerate(setup.runners)
        if runner.max_concurrency is None or level <= runner.max_concurrency
    ]


def _run(setup: Setup, measured: Measured, place: int, level: int) -> dict[str, Any]:
    runner, blocks = setup.runners[place], measured.of(place, level)
    return {
        "name": runner.name,
        "k": runner.k,
        "spec": None if runner.spec is None else runner.spec.as_dict(),
        "lossless": getattr(runner, "lossless", None),
        "concurrency": level if setup.schedule.arrivals is None or setup.schedule.capped else None,
        "request_rate": None if setup.schedule.arrivals is None else setup.schedule.arrivals.request_rate,
        **run_figures(blocks),
        **goodput(blocks, setup.promises),
        "alarm": alarm_of(runner, counters(blocks), setup.workload.random_text),
        **dict.fromkeys(MEMORY, None),
        **setup.memory.get(place, {}),
        "per_request": per_request(blocks),
    }


def alarm_of(runner: Runner, stats: SpecStats | None, random_text: bool) -> dict[str, Any] | None:
    """What to say of a draft that is accepted as by chance; None where all is well or nothing can be told: on random
    tokens no draft has a chance, and lossy ways of accepting say little about the draft.
    """
    spec = runner.spec
    if spec is None or stats is None or random_text or spec.acceptance.lossy:
        return None
    first = first_position(stats.num_drafts, stats.acceptance_per_position if stats.num_drafts else None)
    found = broken_draft(spec.method.name, *first) if first else None
    return found.as_dict() if found else None


def per_request(blocks: Sequence[Block]) -> dict[str, list[Any]]:
    """What vLLM's client writes of each finished request, in its words; seconds, from the block's first submission."""
    found: dict[str, list[Any]] = {name: [] for name in DETAILS}
    for block in blocks:
        first = min((record.submitted_s for record in block.records), default=0.0)
        for record in finished([block]):
            row = (record.num_prompt_tokens, record.num_tokens, record.ttft_s, record.e2e_s, record.gaps_s)
            values = (*row, record.submitted_s - first, record.job.name)
            for name, value in zip(DETAILS, values, strict=True):
                found[name].append(value)
    return found


def compare_all(setup: Setup, measured: Measured, ties: TieRule | None) -> list[Comparison]:
    """Every runner but the first against the first, at every level that both ran."""
    found = []
    noises = {place: _noise(setup, measured, place) for place in range(1, len(setup.runners))}
    for level, place in _cells(setup):
        runner = setup.runners[place]
        blocks = (measured.of(0, level), measured.of(place, level))
        if place == 0 or not blocks[1] or not setup.compared:
            continue
        rule = None if ties is None or not _lossless(runner) else replace(ties, greedy=setup.schedule.sampling.greedy)
        names, levels = (BASELINE, runner.name), len(setup.schedule.concurrency)
        found.append(compare(names, runner.k, level, blocks, setup.schedule.seed, rule, levels, noises[place]))
    return found


def _bounds(setup: Setup, measured: Measured) -> dict[tuple[str, int | None, int], dict[str, Any]]:
    """The bound of every cell, by the candidate's name, k and concurrency."""
    found = {}
    for level, place in _cells(setup):
        runner = setup.runners[place]
        found[runner.name, runner.k, level] = bound_figures(measured.of(0, level), measured.of(place, level))
    return found


def _noise(setup: Setup, measured: Measured, place: int) -> BlockNoise:
    levels = setup.schedule.concurrency
    return block_noise([paired_blocks(measured.of(0, level), measured.of(place, level)) for level in levels])


def _lossless(runner: Runner) -> bool:
    known = getattr(runner, "lossless", None)
    return known if known is not None else runner.spec is None or not runner.spec.acceptance.lossy


def describe_workload(setup: Setup, measured: Measured) -> dict[str, Any]:
    """What was sent, and how the baseline's answers look: ended by EOS, repeating themselves."""
    schedule, prompts = setup.schedule, setup.workload.prompts
    answers = finished(block for level in schedule.concurrency for block in measured.of(0, level))
    lengths = [length for record in answers if (length := record.num_prompt_tokens) is not None]
    lengths = lengths or [len(prompt.token_ids) for prompt in prompts if prompt.token_ids]
    source = setup.workload.source
    arrivals = schedule.arrivals
    count = schedule.num_prompts or len(prompts)
    asked = prompts[:count]
    return {
        "target": setup.target,
        "prompts": dict(Counter(prompt.category for prompt in asked)),
        "requests": num_requests(asked),
        "distinct_prompts": len(prompts),
        "uses_of_a_prompt": uses_of_a_prompt(schedule, setup.workload, measured.repeats),
        "prompts_file": None if source == BUNDLED_PROMPTS else source,
        "request_ids": [prompt.id for prompt in prompts],
        "prompt_tokens": _spread(lengths),
        "random_tokens": setup.workload.random_text,
        "request_rate": None if arrivals is None else arrivals.request_rate,
        "burstiness": None if arrivals is None or arrivals.trace else arrivals.burstiness,
        "trace": arrivals is not None and arrivals.trace,
        "goodput": dict(setup.promises),
        "repeats": schedule.repeats,
        "repeats_measured": measured.repeats,
        "precision": schedule.precision,
        "warmup": schedule.warmup,
        "output_len": schedule.sampling.max_tokens,
        "temperature": schedule.sampling.temperature,
        "top_p": schedule.sampling.top_p,
        "top_k": schedule.sampling.top_k,
        "min_p": schedule.sampling.min_p,
        "seed": schedule.seed,
        "ended_by_eos_share": ended_by(answers, setup.eos_token_ids),
        "repeated_4gram_share": repetition(answers),
        "interrupted": measured.interrupted,
    }


def _spread(values: Sequence[int]) -> dict[str, float | None]:
    if not values:
        return {"min": None, "mean": None, "max": None}
    return {"min": min(values), "mean": fmean(values), "max": max(values)}


def without_details(report: Report) -> Report:
    """The report without the lists of each request."""
    runs = [{name: value for name, value in run.items() if name != "per_request"} for run in report["runs"]]
    return report | {"runs": runs}


def differing(report: Report) -> list[dict[str, Any]]:
    """The comparisons whose outputs differ for more than a near-tie: they fail the run."""
    return [row for row in report["comparison"] if row["outputs"] == DIFFERENT]


def num_failed(report: Report) -> int:
    """Requests that failed, over all runs."""
    return sum(run["failed"] for run in report["runs"])
