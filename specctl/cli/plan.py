"""`specctl plan`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.settings import Settings
from specctl.errors import EXIT_OK, SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.planning.acceptance import Acceptance
    from specctl.planning.models import KnownDrafting
    from specctl.planning.plan import Plan
    from specctl.spec import SpecDecodeConfig

USUAL_CONTEXT = 8192


def command(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", help="A folder, an id in the local cache, a known id or a preset."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="h100, h200-nvl, rtx-pro-6000, …; a wrong name lists them all.")
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(help="Tokens of each conversation, prompt and answer (default: 8192, or the model's limit)."),
    ] = None,
    concurrency: Annotated[str, typer.Option(help="Conversations at once, one level or several.")] = "1,8,32,128",
    draft: Annotated[
        str | None, typer.Option(help="A draft: folder, id, mtp (the target's own layers), ngram or suffix.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Drafted tokens a step (default: the best at each level).")] = None,
    tp: Annotated[int, typer.Option("--tp", "--tensor-parallel-size", help="GPUs that share the target.")] = 1,
    draft_tp: Annotated[int | None, typer.Option(help="GPUs that share the draft (default: as the target).")] = None,
    dtype: Annotated[str | None, typer.Option(help="bfloat16, float16 or float32 instead of the checkpoint's.")] = None,
    quantization: Annotated[
        str | None, typer.Option(help="fp8, int8, nvfp4, mxfp4, awq, gptq or int4 instead of the checkpoint's.")
    ] = None,
    kv_dtype: Annotated[
        str | None, typer.Option("--kv-dtype", "--kv-cache-dtype", help="Of the cache: auto, bfloat16, fp8, …")
    ] = None,
    acceptance_length: Annotated[
        float | None, typer.Option(help="Mean acceptance length, bonus token included, at --k.")
    ] = None,
    acceptance_rate: Annotated[float | None, typer.Option(help="Accepted / drafted tokens at --k.")] = None,
    gpu_memory_utilization: Annotated[float, typer.Option(help="Share of the GPU's memory to use.")] = 0.9,
    reserve_gib: Annotated[float, typer.Option(help="GiB of each GPU for runtime, activations and graphs.")] = 5.0,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> int:
    """Work out memory, ceilings, and where a draft stops paying."""
    if format not in ("text", "json"):
        raise UsageError(f"unknown format {format!r}", help="one of text, json")
    from specctl.planning.hardware import gpu_named
    from specctl.planning.models import draft_named, target_named
    from specctl.planning.plan import Plan, Request

    spec = _setting(ctx.obj, target)
    name = (spec.target if spec and (target is None or _is_preset(target)) else target) or target
    if spec is not None and name == target and name is not None and _is_preset(name):
        raise UsageError(f"the preset {name} is for any target", help=f"specctl plan TARGET --spec {name} --gpu h100")
    if name is None:
        raise UsageError("no target is given", help="specctl plan TARGET --gpu h100, or --spec with a target in it")
    if gpu is None:
        raise UsageError("no GPU is given", help="add --gpu h100, for example")
    device, levels = gpu_named(gpu), _levels(concurrency)
    known = target_named(name)
    length = context if context is not None else min(USUAL_CONTEXT, known.facts.max_positions or USUAL_CONTEXT)
    wanted, method = _draft(draft, spec)
    drafting = draft_named(wanted, known, method) if wanted is not None else None
    count = k if k is not None else spec.num_speculative_tokens if spec else None
    measured = _acceptance(acceptance_length, acceptance_rate, count, drafting) or _figures(spec)
    asked = Request(
        known, device, length, levels, drafting, tp, _draft_tp(draft_tp, spec), dtype, quantization, kv_dtype,
        measured, gpu_memory_utilization, reserve_gib, count,
    )  # fmt: skip
    return _emit(Plan(asked), format)


def _emit(plan: Plan, format: str) -> int:
    if format == "json":
        sys.stdout.write(json.dumps(plan.as_dict(), indent=2, ensure_ascii=False) + "\n")
    else:
        from specctl.planning.as_text import render

        sys.stdout.write(render(plan))
    if plan.problem is None:
        return EXIT_OK
    sys.stdout.flush()
    raise SpecctlError(plan.problem[0], help=plan.problem[1])


def _levels(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(each) for each in text.split(",") if each.strip())
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UsageError(
            f"--concurrency is {text!r}; whole numbers above 0 were wanted", help="for example --concurrency 1,8,32,128"
        )
    return tuple(dict.fromkeys(sorted(found)))


def _is_preset(name: str) -> bool:
    from specctl.resources import find_model, preset

    return find_model(name) is None and preset(name) is not None


def _setting(settings: Settings, target: str | None) -> SpecDecodeConfig | None:
    """The setting of the command line, or of the preset that TARGET names."""
    if target is not None and not settings and _is_preset(target):
        from specctl.source.flags import Flags

        settings = Settings(Flags((), specs=(target,)))
    if not settings:
        return None
    from specctl.rules.losses import NOT_RUN_HERE

    found = settings.require(ignore=(NOT_RUN_HERE,))
    if len(found) > 1:
        raise UsageError(f"{len(found)} settings are given; a plan takes one")
    return found[0][0] if found else None


def _figures(spec: SpecDecodeConfig | None) -> Acceptance | None:
    """The acceptance that a setting in specctl's own format says was published."""
    from specctl.planning.models import published

    lengths: dict[str, dict[int, float]] = {}
    for entry in (spec.about.get("published") or ()) if spec else ():
        k = entry["k"]
        for name, value in (entry.get("acceptance_length") or {}).items():
            lengths.setdefault(str(name), {})[k] = float(value)
        for name, value in (entry.get("acceptance_rate") or {}).items():
            lengths.setdefault(str(name), {}).setdefault(k, 1 + float(value) * k)
    found = published(lengths, "the setting's own figures")
    return found if found.known else None


def _draft(draft: str | None, spec: SpecDecodeConfig | None) -> tuple[str | None, str | None]:
    """The draft's name and method: as typed, else as the setting has them."""
    if draft is not None or spec is None:
        return draft, None
    method = spec.method.name
    if spec.model is not None:
        return spec.model, method
    plain = {"suffix_automaton": "suffix"}.get(method, method)
    if plain not in ("ngram", "suffix", "mtp"):
        raise SpecctlError(f"a setting of the method {method} cannot be planned", help="name the draft with --draft")
    return plain, method


def _draft_tp(given: int | None, spec: SpecDecodeConfig | None) -> int | None:
    return given if given is not None or spec is None else spec.draft.tensor_parallel_size


def _acceptance(
    length: float | None, rate: float | None, k: int | None, drafting: KnownDrafting | None
) -> Acceptance | None:
    """What the user measured, at the k it was measured with."""
    from specctl.planning.acceptance import from_length, from_rate
    from specctl.planning.plan import USUAL_K

    given: dict[str, Any] = {"--acceptance-length": length, "--acceptance-rate": rate}
    named = [flag for flag, value in given.items() if value is not None]
    if not named:
        return None
    if drafting is None:
        raise UsageError(f"{named[0]} needs a draft", help="name it with --draft")
    if len(named) == 2:
        raise UsageError("--acceptance-length and --acceptance-rate say the same thing; give one")
    at = k or drafting.k or USUAL_K
    source = f"{named[0]} {given[named[0]]:g} of the command line at k = {at}"
    return from_length(length, at, source) if length is not None else from_rate(rate or 0.0, at, source)
