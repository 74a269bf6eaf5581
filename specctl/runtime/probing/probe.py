"""Why a draft is accepted so little: measured as it is, then with one thing changed at a time (`inspect --probe`).

The long form of the check at load (`check`): the same changes, the same comparison, on the target's own answers to the
user's prompts. There a draft is asked for behind every token, so what follows the target is what would be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from specctl.errors import SpecctlError
from specctl.planning.alarm import BOUND, Alarm, broken_draft, lower_bound, upper_bound
from specctl.runtime.build import make_engine
from specctl.runtime.options import EngineOptions
from specctl.runtime.probing.compare import gain, trivial_share
from specctl.runtime.probing.follow import Marks
from specctl.runtime.probing.lesson import Lesson, Text
from specctl.runtime.probing.trial import Trial, variants_of
from specctl.runtime.probing.variants import Variant
from specctl.runtime.request import Request, SamplingParams
from specctl.runtime.target import Target, load_target
from specctl.spec.config import SpecDecodeConfig

AS_IT_IS = "as it is"
HALF = ("float16", "bfloat16")
Prompts = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Row:
    """One measurement: ``accepted[i]`` of ``drafts`` drafts have place i accepted; ``error``: why there is none."""

    cause: str
    change: str
    cure: str = ""
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
            "cure": self.cure or None,
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
            cure = f"; {found.cure}" if found.cure else ""
            return f"the draft {state} as it is; {verb} {better}. Cause: {found.cause}{cure}"
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
    rows, better = [], []
    for row, helps in _Probing(target, spec, max_tokens).rows(prompts, other_prompts):
        progress(row)
        rows.append(row)
        better += [row] if helps else []
    base = rows[0]
    alarm = broken_draft(spec.method.name, base.drafts, base.accepted[0]) if base.accepted else None
    restored = max(better, key=lambda row: row.length or 0, default=None)
    return Probe(spec.method.name, spec.num_speculative_tokens, target.dtype, tuple(rows), alarm, restored)


class _Probing:
    """One pair on its way through the changes; ``_base`` and ``_row``: as it is."""

    def __init__(self, target: Target, spec: SpecDecodeConfig, max_tokens: int) -> None:
        self._target = target
        self._spec = spec
        self._max_tokens = max_tokens
        self._base: Marks | None = None
        self._row = Row(AS_IT_IS, "")

    def rows(self, prompts: Prompts, other: tuple[str, Prompts] | None) -> Iterator[tuple[Row, bool]]:
        """Each measurement, and whether it is clearly better than the first, the draft as it is."""
        texts, layers, k = self._answers(prompts)
        trial = Trial(self._target, self._spec, Lesson(self._target, texts), k)
        self._row, self._base = self._measured(self._row, trial.marks)
        yield self._row, False
        if other is not None:
            again, *_ = self._answers(other[1])
            chat = Trial(self._target, self._spec, Lesson(self._target, again), k)
            yield self._apart(*self._measured(Row("chat template", other[0]), chat.marks))
        with variants_of(self._target, self._spec, layers) as found:
            trial.read(found, layers or ())
            for variant in found:
                yield self._paired(trial, variant, len(found) * k)
        if self._target.dtype in HALF:
            wide = load_target(self._target.name, device=self._target.device, dtype="float32")
            trial = Trial(wide, self._spec, Lesson(wide, texts), k)
            cure = "run target and draft with --dtype float32"
            yield self._apart(*self._measured(Row("dtype", "target and draft in float32", cure), trial.marks))

    def _answers(self, prompts: Prompts) -> tuple[list[Text], tuple[int, ...] | None, int]:
        """The target's greedy answers, with the draft where it can be loaded; the states that the draft reads, None
        where it cannot, and how many tokens it drafts.
        """
        options = EngineOptions(min(8, len(prompts)), check_cache=True, draft_check=False)
        try:
            engine = make_engine(self._target, self._spec, options)
        except SpecctlError:
            engine = make_engine(self._target, None, options)
        room = engine.max_model_len - self._max_tokens
        cut = [list(prompt[:room]) for prompt in prompts]
        said: dict[str, list[int]] = {str(number): list(prompt) for number, prompt in enumerate(cut)}
        for number, prompt in enumerate(cut):
            sampling = SamplingParams(temperature=0, max_tokens=self._max_tokens, ignore_eos=True)
            engine.add(Request(str(number), prompt, sampling))
        while engine.has_work():
            for emission in engine.step():
                said[emission.request_id] += emission.token_ids
        texts = [Text(said[str(number)], len(prompt)) for number, prompt in enumerate(cut)]
        k = engine.num_speculative_tokens or self._spec.num_speculative_tokens or 1
        return texts, engine.proposer.hidden_layers if engine.proposer else None, k

    @staticmethod
    def _measured(row: Row, measure: Callable[[], Marks | None]) -> tuple[Row, Marks | None]:
        """``row`` with its figures; a draft that cannot be loaded leaves its error there."""
        try:
            marks = measure()
        except SpecctlError as error:
            return Row(row.cause, row.change, row.cure, error=error.message), None
        if marks is None:
            return Row(row.cause, row.change, row.cure), None
        return Row(row.cause, row.change, row.cure, marks.places, tuple(marks.accepted.tolist())), marks

    def _paired(self, trial: Trial, variant: Variant, comparisons: int) -> tuple[Row, bool]:
        """A change on the same text, place by place."""
        row, marks = self._measured(Row(variant.cause, variant.change, variant.cure), partial(trial.marks, variant))
        if self._base is None or marks is None:
            return self._apart(row, marks)
        return row, gain(self._base, marks, trivial_share(trial.lesson), comparisons) is not None

    def _apart(self, row: Row, marks: Marks | None) -> tuple[Row, bool]:
        """A measurement on another text, or without one to compare with: more than chance, and at some place of the
        draft the 99.9 % intervals lie apart.
        """
        base = self._row
        if marks is None or lower_bound(row.drafts, row.accepted[0]) <= BOUND:
            return row, False
        if not base.drafts:
            return row, True
        places = zip(row.accepted, base.accepted, strict=False)
        apart = any(lower_bound(row.drafts, ours) > upper_bound(base.drafts, theirs) for ours, theirs in places)
        return row, apart and (row.length or 0) > (base.length or 0)
