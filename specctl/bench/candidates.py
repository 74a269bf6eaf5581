"""Which settings a run compares with plain decoding, and what they are called in the report."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specctl.errors import UsageError
from specctl.resources import BUNDLED_NAMES, bundled_model
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import METHODS, DraftModel, Ngram

BASELINE = "baseline"
PLAIN_METHOD = "none"
DEFAULT_TARGET = "demo"
DEFAULT_K = 4
MAX_K = 128
NGRAM = Ngram(prompt_lookup_min=2, prompt_lookup_max=4)


@dataclass(frozen=True)
class Candidate:
    """One setting to measure; `name` is its method, with `-2`, `-3` where one stands twice with the same k."""

    name: str
    k: int | None
    spec: SpecDecodeConfig


def runnable_methods() -> list[str]:
    """The methods that the bundled runtime is meant to run."""
    return [name for name, method in METHODS.items() if method.runs_in_specctl]


def method_names(listed: str) -> list[str]:
    """A comma-separated list of methods, `none` and repeats taken out. Raises `UsageError` for a name that is none."""
    names = [part.strip().replace("-", "_") for part in listed.split(",") if part.strip()]
    if not names:
        raise UsageError("--methods is empty", help=f"the methods are none, {', '.join(runnable_methods())}")
    known = [PLAIN_METHOD, *runnable_methods()]
    for name in names:
        if name not in known:
            raise UsageError(f"--methods: {_why_not(name)}", help=_nearest(name, known))
    return [name for name in dict.fromkeys(names) if name != PLAIN_METHOD]


def _why_not(name: str) -> str:
    return f"{name!r} cannot be run by specctl's own runtime" if name in METHODS else f"no method is called {name!r}"


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else f"the methods are {', '.join(known)}"


def default_methods(target: str, drafts: Mapping[str, str]) -> list[str]:
    """What is measured when the user names nothing: n-gram, and every draft that is at hand."""
    at_hand = list(drafts) or [DraftModel.name] * (bundled_draft(target, DraftModel.name) is not None)
    return list(dict.fromkeys([Ngram.name, *at_hand]))


def bundled_draft(target: str, method: str) -> str | None:
    """The draft that comes with specctl for this bundled target and method, or None."""
    part = "draft" if method == DraftModel.name else method.replace("_", "-")
    name = f"{target}-{part}"
    return name if target in BUNDLED_NAMES and bundled_model(name) is not None else None


def has_draft(method: str, drafts: Mapping[str, str], target: str) -> bool:
    """Whether the method can begin: it needs no draft, or may look into the target, or one is at hand."""
    return not METHODS[method].needs_model or method in drafts or bundled_draft(target, method) is not None


def from_methods(
    methods: Sequence[str], ks: Sequence[int], drafts: Mapping[str, str], target: str
) -> list[SpecDecodeConfig]:
    """One spec for each method and k. Raises `UsageError` for a method whose draft is not known."""
    return [_spec(method, k, drafts, target) for method in methods for k in ks]


def _spec(name: str, k: int, drafts: Mapping[str, str], target: str) -> SpecDecodeConfig:
    kind = METHODS[name]
    if name == Ngram.name:
        return SpecDecodeConfig(NGRAM, k)
    model = None
    if kind.needs_model or kind.optional_model:
        model = drafts.get(name) or bundled_draft(target, name)
        if model is None and kind.needs_model:
            raise UsageError(f"{name} needs a draft for the target {target}", help=f"give one: --draft {name}=MODEL")
    return SpecDecodeConfig(kind(), k, model=model)


def check_drafts(drafts: Mapping[str, str], methods: Sequence[str]) -> None:
    """Raise `UsageError` for a `--draft METHOD=MODEL` that no measured method uses."""
    for name in drafts:
        if name not in METHODS:
            raise UsageError(f"--draft: no method is called {name!r}", help=_nearest(name, runnable_methods()))
        if not (METHODS[name].needs_model or METHODS[name].optional_model):
            raise UsageError(f"--draft: the method {name} takes no draft")
        if name not in methods:
            raise UsageError(f"--draft {name}=… is given, but {name} is not measured", help=f"add {name} to --methods")


def named(specs: Sequence[tuple[SpecDecodeConfig, int | None]]) -> list[Candidate]:
    """Candidates with their names; each spec comes with the k that the runtime found for it."""
    seen: dict[tuple[str, int | None], int] = {}
    found = []
    for spec, k in specs:
        key = (spec.method.name, k)
        seen[key] = seen.get(key, 0) + 1
        suffix = f"-{seen[key]}" if seen[key] > 1 else ""
        found.append(Candidate(spec.method.name + suffix, k, spec))
    return found


def number_list(text: str, option: str, *, largest: int | None = None) -> list[int]:
    """`4`, `2,4` or `1..7` as numbers in ascending order, each once. Raises `UsageError` naming `option`."""
    found: set[int] = set()
    for part in text.split(","):
        found.update(_numbers(part.strip(), text, option))
    if min(found) < 1 or (largest is not None and max(found) > largest):
        bound = ">= 1" if largest is None else f"between 1 and {largest}"
        raise UsageError(f"{option} is {text!r}; every number must be {bound}")
    return sorted(found)


def _numbers(part: str, text: str, option: str) -> range:
    first, dots, last = part.partition("..")
    ends = (first, last if dots else first)
    # A bound on the digits keeps `1..99999999999` from becoming a set of that many numbers.
    if not all(end.isascii() and end.isdigit() and len(end) <= 5 for end in ends):
        raise UsageError(f"{option} is {text!r}; it must look like 4, 2,4 or 1..7")
    numbers = range(int(ends[0]), int(ends[1]) + 1)
    if not numbers:
        raise UsageError(f"{option} is {text!r}; the range {part} is empty")
    return numbers


def common_target(given: str | None, specs: Sequence[SpecDecodeConfig]) -> str:
    """The target of the run: the one that was typed, else the one that the specs name, else `demo`.

    Raises `UsageError` where specs of one run name two targets and none was typed.
    """
    if given is not None:
        return given
    wanted = list(dict.fromkeys(spec.target for spec in specs if spec.target is not None))
    if len(wanted) > 1:
        raise UsageError(f"the settings name several targets: {', '.join(wanted)}", help="say which: bench TARGET …")
    return wanted[0] if wanted else DEFAULT_TARGET


def choose_specs(
    given: Sequence[SpecDecodeConfig], methods: str | None, ks: Sequence[int], drafts: Mapping[str, str], target: str
) -> list[SpecDecodeConfig]:
    """The specs to measure: those of `--methods` for each k, then the settings that were given.

    With neither, n-gram and the drafts at hand. Raises `UsageError` as `method_names` and `from_methods` do.
    """
    usual = [] if given else default_methods(target, drafts)
    names = usual if methods is None else method_names(methods)
    check_drafts(drafts, names)
    return [*from_methods(names, ks, drafts, target), *given]


def draft_options(options: Sequence[str]) -> dict[str, str]:
    """`METHOD=MODEL` options as a mapping. Raises `UsageError` for one that is not of this form."""
    found = {}
    for option in options:
        method, equals, model = option.partition("=")
        if not (method and equals and model):
            raise UsageError(f"--draft is {option!r}; it must look like draft_model=MODEL")
        found[method.replace("-", "_")] = model
    return found


def assistant(specs: Sequence[SpecDecodeConfig], drafts: Mapping[str, str], target: str) -> str | None:
    """The draft model that another runtime may use as well: the first that this run measures, else one at hand."""
    measured = (spec.model for spec in specs if spec.method.name == DraftModel.name and spec.model)
    return next(measured, None) or drafts.get(DraftModel.name) or bundled_draft(target, DraftModel.name)
