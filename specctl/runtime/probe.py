"""Why a draft is accepted so little: measured as it is, then with one thing changed at a time (`inspect --probe`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specctl.errors import SpecctlError
from specctl.planning.alarm import BOUND, Alarm, broken_draft, lower_bound, upper_bound
from specctl.runtime.build import make_engine
from specctl.runtime.options import EngineOptions
from specctl.runtime.probe_variants import variants
from specctl.runtime.request import Request, SamplingParams
from specctl.runtime.stats import SpecStats
from specctl.runtime.target import Target, load_target
from specctl.spec.config import SpecDecodeConfig

AS_IT_IS = "as it is"
HALF = ("float16", "bfloat16")
Prompts = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Row:
    """One measurement: ``accepted[i]`` of ``drafts`` steps accepted place i; ``error``: why there is none."""

    cause: str
    change: str
    drafts: int = 0
    accepted: tuple[int, ...] = ()
    error: str | None = None

    @property
    def first(self) -> float | None:
        """Acceptance at position 0."""
        return self.accepted[0] / self.drafts if self.drafts and self.accepted else None

    @property
    def length(self) -> float | None:
        """Mean acceptance length."""
        return 1 + sum(self.accepted) / self.drafts if self.drafts else None

    def as_dict(self) -> dict[str, Any]:
        """The form of reports."""
        return {
            "cause": self.cause,
            "change": self.change,
            "num_drafts": self.drafts,
            "acceptance_at_position_0": self.first,
            "mean_acceptance_length": self.length,
            "error": self.error,
        }


@dataclass(frozen=True)
class Probe:
    """``rows``: the draft as it is first, then every change. ``restored``: the change after which certainly more is
    accepted, None where none does that. ``alarm``: what the figures as it is say by themselves.
    """

    method: str
    k: int | None
    dtype: str
    rows: tuple[Row, ...]
    alarm: Alarm | None
    restored: Row | None

    @property
    def broken(self) -> bool:
        """Whether the draft cannot be used as it is."""
        return self.alarm is not None or self.rows[0].error is not None

    @property
    def text(self) -> str:
        """The answer in a sentence."""
        base, found = self.rows[0], self.restored
        state = f"cannot be loaded ({base.error})" if base.error else f"accepts {_share(base)} of its first tokens"
        if found is not None:
            better = f"{_share(found)} with {found.change}"
            verb = "it accepts" if self.broken else "it would accept"
            return f"the draft {state} as it is; {verb} {better}. Cause: {found.cause}"
        if not self.broken:
            return f"the draft {state}, and no change makes it better"
        left = f". What is left: {', '.join(name for name, _ in self.alarm.causes)}" if self.alarm else ""
        return f"the draft {state} as it is, and no change that was tried restores it{left}"

    def as_dict(self) -> dict[str, Any]:
        """The form of reports."""
        return {
            "method": self.method,
            "k": self.k,
            "dtype": self.dtype,
            "rows": [row.as_dict() for row in self.rows],
            "alarm": self.alarm.as_dict() if self.alarm else None,
            "cause": self.restored.cause if self.restored else None,
            "restored_by": self.restored.change if self.restored else None,
            "text": self.text,
        }


def _share(row: Row) -> str:
    return "nothing" if row.first is None else f"{100 * row.first:.1f} %"


def probe(
    target: Target,
    spec: SpecDecodeConfig,
    prompts: Prompts,
    other_prompts: tuple[str, Prompts] | None = None,
    max_tokens: int = 48,
    progress: Callable[[Row], None] = lambda _: None,
) -> Probe:
    """Measure ``spec`` greedily on ``prompts`` as it is and with each change. ``other_prompts``: the same texts in
    another form (with or without the chat template), and what to call it.
    """
    rows = []
    for row in _rows(target, spec, prompts, other_prompts, max_tokens):
        progress(row)
        rows.append(row)
    base = rows[0]
    alarm = broken_draft(spec.method.name, base.drafts, base.accepted[0]) if base.accepted else None
    better = [row for row in rows[1:] if _better(row, base)]
    restored = max(better, key=lambda row: row.length or 0, default=None)
    return Probe(spec.method.name, spec.num_speculative_tokens, target.dtype, tuple(rows), alarm, restored)


def _rows(
    target: Target, spec: SpecDecodeConfig, prompts: Prompts, other: tuple[str, Prompts] | None, max_tokens: int
) -> Iterator[Row]:
    yield measure(AS_IT_IS, "", target, spec, prompts, max_tokens)
    if other is not None:
        yield measure("chat template", other[0], target, spec, other[1], max_tokens)
    with tempfile.TemporaryDirectory(prefix="specctl-probe-") as place:
        for found in variants(target, spec, Path(place)):
            yield measure(found.cause, found.change, target, found.spec, prompts, max_tokens)
    if target.dtype in HALF:
        wide = load_target(target.name, device=target.device, dtype="float32")
        yield measure("dtype", "target and draft in float32", wide, spec, prompts, max_tokens)


def measure(cause: str, change: str, target: Target, spec: SpecDecodeConfig, prompts: Prompts, max_tokens: int) -> Row:
    """Run all prompts with one setting; a setting that cannot run becomes a row with its error."""
    try:
        stats = _run(target, spec, prompts, max_tokens)
    except SpecctlError as error:
        return Row(cause, change, error=error.message)
    return Row(cause, change, stats.num_drafts, tuple(stats.accepted_per_position))


def _run(target: Target, spec: SpecDecodeConfig, prompts: Prompts, max_tokens: int) -> SpecStats:
    options = EngineOptions(max_num_seqs=min(8, len(prompts)), check_cache=True)
    engine = make_engine(target, spec, options)
    room = engine.max_model_len - max_tokens
    for number, prompt in enumerate(prompts):
        sampling = SamplingParams(temperature=0, max_tokens=max_tokens)
        engine.add(Request(str(number), list(prompt[:room]), sampling))
    while engine.has_work():
        engine.step()
    return engine.stats


def _better(row: Row, base: Row) -> bool:
    """Whether more is accepted for certain: more than chance, and at some place of the draft the 99.9 % intervals lie
    apart.
    """
    if not row.accepted or lower_bound(row.drafts, row.accepted[0]) <= BOUND:
        return False
    if base.error is not None or not base.drafts:
        return True
    places = zip(row.accepted, base.accepted, strict=False)
    apart = any(lower_bound(row.drafts, ours) > upper_bound(base.drafts, theirs) for ours, theirs in places)
    return apart and (row.length or 0) > (base.length or 0)
