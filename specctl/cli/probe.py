"""`specctl inspect --probe`: loads target and draft, and tries what may be wrong with the pair."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specctl.errors import SpecctlError

if TYPE_CHECKING:
    from specctl.modelinfo.fit import Pair
    from specctl.runtime.probing.probe import Probe, Row
    from specctl.spec.config import SpecDecodeConfig

NUM_PROMPTS = 16
K = 3


@dataclass(frozen=True)
class ProbeOptions:
    """What the command line says of a probe; ``prompts``: a file, None for the bundled ones."""

    prompts: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    num_speculative_tokens: int = K


def run_probe(pair: Pair, options: ProbeOptions) -> Probe:
    """Measure the pair as it is and with each change. Raises SpecctlError and its kin for a target or prompts that
    cannot be used; a draft that cannot is part of the answer.
    """
    from specctl.bench.workloads import DEMO_SET, TEXT_SET, as_text, choose, read_workload, tokens_of
    from specctl.runtime import load_target
    from specctl.runtime.probing.probe import probe

    target = load_target(pair.target.name, device=options.device, dtype=options.dtype)
    work = read_workload(options.prompts, DEMO_SET if pair.target.name == "demo" else TEXT_SET)
    prompts = choose(work, None, min(NUM_PROMPTS, len(work.prompts))).prompts
    plain = [target.encode(as_text(prompt)) for prompt in prompts]
    other = ("without the chat template", plain) if target.has_chat_template else None
    asked = [tokens_of(prompt, target) for prompt in prompts]
    return probe(target, setting(pair, options.num_speculative_tokens), asked, other, progress=_tell)


def setting(pair: Pair, k: int) -> SpecDecodeConfig:
    """What would run the pair: the method that the draft is for, k tokens a step."""
    from specctl.spec import METHODS, SpecDecodeConfig

    if pair.method not in METHODS:
        raise SpecctlError(f"{pair.draft.name} is a draft for {pair.method}, which does not run here")
    own = pair.draft.path == pair.target.path
    return SpecDecodeConfig(METHODS[pair.method](), k, model=None if own else pair.draft.name)


def _tell(row: Row) -> None:
    """A line on the way: loading and measuring take their time."""
    if sys.stderr.isatty():
        print(f"measured: {row.cause} {row.change}".rstrip(), file=sys.stderr)


def page(found: Probe) -> str:
    """The probe as text: a table, and the answer."""
    lines = [f"probe: method {found.method}, k = {found.k}, greedy, {found.dtype}"]
    rows = [_cells(row) for row in found.rows]
    widths = [max(len(row[column]) for row in [_HEADER, *rows]) for column in range(len(_HEADER))]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [_HEADER, *rows]
    ]
    return "\n".join([*lines, "", *([f"ALARM: {found.alarm.text}"] if found.alarm else []), f"answer: {found.text}"])


_HEADER = ("first token", "length", "drafts", "cause", "change")


def _cells(row: Row) -> tuple[str, ...]:
    if row.error is not None:
        return "-", "-", "-", row.cause, f"{row.change}: {row.error}".removeprefix(": ")
    first = "-" if row.first is None else f"{100 * row.first:.1f} %"
    length = "-" if row.length is None else f"{row.length:.2f}"
    return first, length, str(row.drafts), row.cause, row.change
