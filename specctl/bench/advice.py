"""The setting to paste: the kept draft in every engine's own spelling, with its schedule where the engine has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specctl.spec.config import ScheduleStep, SpecDecodeConfig

ENGINES = ("vllm", "sglang", "trtllm", "specctl")
# vLLM asserts that the scheduled k of these is the configured one, so they cannot be switched by batch size.
ENDLESS = (
    "this method's drafts cannot stop above concurrency {0}, where they do not pay; let no more requests run at once"
)
UNSCHEDULED = ("suffix", "medusa")


def schedule(plan: Mapping[int, int | None], highest: int) -> tuple[ScheduleStep, ...]:
    """Draft lengths by batch size from the best k at each tested level; none above the last level that is kept.

    Empty where one k serves at every level tested: above the highest nothing is known, and nothing is claimed.
    """
    from specctl.spec.config import ScheduleStep

    levels = sorted(plan)
    known = [(level, k) for level in levels if (k := plan[level]) is not None]
    if not known or (len({k for _, k in known}) == 1 and known[-1][0] == highest):
        return ()
    steps: list[ScheduleStep] = []
    first = 1
    for level, k in known:
        if steps and steps[-1].num_speculative_tokens == k:
            steps[-1] = replace(steps[-1], last=level)
        else:
            steps.append(ScheduleStep(first, level, k))
        first = level + 1
    if known[-1][0] == highest:
        steps[-1] = replace(steps[-1], last=None)
    else:
        steps.append(ScheduleStep(first, None, 0))
    return tuple(steps)


def recommended(
    spec: SpecDecodeConfig, plan: Mapping[int, int | None], highest: int, target: str | None
) -> SpecDecodeConfig:
    """The spec with the target, the largest k that the plan wants, and the schedule."""
    ks = [k for k in plan.values() if k is not None]
    most = max(ks, default=spec.num_speculative_tokens)
    steps = () if spec.method.name in UNSCHEDULED else schedule(plan, highest)
    return replace(spec, target=spec.target or target, num_speculative_tokens=most, schedule=steps or spec.schedule)


def settings(spec: SpecDecodeConfig, up_to: int | None = None) -> dict[str, dict[str, Any]]:
    """By engine: `text` to paste (None where it has no counterpart), its release, and `notes` on what gets lost.

    `up_to`: the concurrency above which the draft does not pay, where the setting is to stop there.
    """
    from specctl.errors import SpecctlError
    from specctl.rules.convert import convert

    found: dict[str, dict[str, Any]] = {}
    for engine in ENGINES:
        try:
            converted = convert(spec, engine)
        except SpecctlError as error:
            found[engine] = {"release": None, "text": None, "notes": [error.message]}
            continue
        said = [f"{each.severity}: {each.message}" for each in converted.report.diagnostics]
        if up_to is not None and not spec.schedule:
            said.append(f"warning: {ENDLESS.format(up_to)}")
        fits = converted.report.valid
        text = converted.text.strip() if fits else None
        found[engine] = {"release": converted.release, "text": text, "notes": said}
    return found


def preset(spec: SpecDecodeConfig, report: Mapping[str, Any]) -> str:
    """The kept setting as a preset in specctl's own YAML, with what was measured in its comments."""
    from specctl.dialects.dialect import DIALECTS
    from specctl.dialects.render import render
    from specctl.spec.release import known

    body = render(DIALECTS["specctl"].write(spec, known("specctl", None)), "specctl")
    lines = [report["verdict"]["text"], *measured_on(report)]
    return "".join(f"# {line}\n" for line in lines) + body


def measured_on(report: Mapping[str, Any]) -> Sequence[str]:
    """Where and on what a report was measured, one line each."""
    env, work = report["environment"], report["workload"]
    names = ("engine", "release", "torch", "device", "dtype", "threads")
    where = ", ".join(f"{name} {env[name]}" for name in names if env.get(name) is not None)
    return [
        f"Measured by specctl {env.get('specctl')}: {where}.",
        f"Workload: {sum(work['prompts'].values())} prompts ({', '.join(work['prompts'])}), "
        f"at most {work['output_len']} new tokens, temperature {work['temperature']:g}.",
    ]
