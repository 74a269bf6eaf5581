"""Writes the generated parts of docs/planning.md: outputs of `specctl plan`, tables of GPUs and models, and how the
plan compares with published runs.

    python docs/planning_page.py            # writes them between their marks
    python docs/planning_page.py --check    # exit 1 where the page is stale
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specctl.cli.main import run
from specctl.planning.acceptance import from_length
from specctl.planning.hardware import GPUS, gpu_named
from specctl.planning.known_drafts import DRAFTS
from specctl.planning.known_targets import TARGETS
from specctl.planning.models import draft_named, target_named
from specctl.planning.plan import Plan, Request
from specctl.planning.precision import precision_of
from specctl.planning.shape import shape_of

PAGE = Path(__file__).with_name("planning.md")
MARK = re.compile(r"<!-- (plan|table): (.+?) -->\n.*?<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Run:
    """A published speed-up: tokens/s for each user with a draft over without, and the acceptance length measured."""

    target: str
    draft: str
    gpu: str
    tp: int
    level: int
    k: int
    length: float
    speedup: float
    source: str

    @property
    def planned(self) -> float:
        """The same ratio as planned, with conversations of 1024 tokens."""
        known = target_named(self.target)
        request = Request(
            known, gpu_named(self.gpu), 1024, (self.level,), draft_named(self.draft, known), self.tp, k=self.k,
            acceptance=from_length(self.length, self.k, self.source),
        )  # fmt: skip
        point = Plan(request).curve[0]
        return point.baseline_tpot_ms / (point.tpot_ms or float("nan"))


_LLAMA = ("meta-llama/Llama-3.1-8B-Instruct", "lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge", "h200", 1, 1)
_KIMI = ("nvidia/Kimi-K2.6-NVFP4", "lightseekorg/kimi-k2.6-eagle3.1-mla", "gb200", 4)
RUNS = (
    Run(*_LLAMA, 3, 2.90, 2.13, "SpecBundle, MT-Bench"),
    Run(*_LLAMA, 5, 3.52, 2.35, "SpecBundle, MT-Bench"),
    Run(*_LLAMA, 7, 3.86, 2.37, "SpecBundle, MT-Bench"),
    Run(*_LLAMA, 3, 3.34, 2.44, "SpecBundle, HumanEval"),
    Run(*_LLAMA, 5, 4.32, 2.88, "SpecBundle, HumanEval"),
    Run(*_LLAMA, 7, 4.91, 2.99, "SpecBundle, HumanEval"),
    Run(*_LLAMA, 3, 2.55, 1.77, "SpecBundle, GSM8K"),
    Run(*_LLAMA, 5, 2.85, 1.81, "SpecBundle, GSM8K"),
    Run(*_LLAMA, 7, 2.97, 1.75, "SpecBundle, GSM8K"),
    Run(*_KIMI, 1, 3, 3.013, 2.03, "vLLM blog of 26 May 2026"),
    Run(*_KIMI, 4, 3, 3.013, 1.71, "vLLM blog of 26 May 2026"),
    Run(*_KIMI, 16, 3, 3.013, 1.66, "vLLM blog of 26 May 2026"),
    Run(
        "openai/gpt-oss-20b", "Dogacel/specdrift-gpt-oss-20b-eagle3", "h100", 1, 1, 3, 2.347, 1.22, "the model card"
    ),
)  # fmt: skip


def output(command: str) -> str:
    """What a `specctl plan` command prints, errors behind it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run(shlex.split(command)[1:])
    return "\n".join(text.rstrip() for text in (out.getvalue(), err.getvalue()) if text)


def gpus() -> Iterator[str]:
    """The GPUs and their figures."""
    yield "| name | GPU | memory GiB | bandwidth TB/s | TFLOPS 16 bits | TFLOPS 8 bits | assumed |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for gpu in GPUS.values():
        half, eight = (f"{each / 1e12:g}" if each else "–" for each in (gpu.half, gpu.eight))
        cells = (gpu.name, gpu.title, f"{gpu.reported_gib:.2f}", f"{gpu.bandwidth / 1e12:g}", half, eight, gpu.assumed)
        yield f"| {' | '.join(cells)} |"


def models() -> Iterator[str]:
    """The known targets."""
    yield "| id | parameters | used by a token | GB as released | KV elements a token |"
    yield "| --- | --- | --- | --- | --- |"
    for name in TARGETS:
        facts = target_named(name).facts
        shape = shape_of(facts)
        size = precision_of(facts).size(shape.parts) / 1e9
        total, active = (f"{each / 1e9:.2f}B" for each in (shape.parts.total, shape.active()))
        yield f"| {name} | {total} | {active} | {size:.2f} | {shape.growing:,} |"


def drafts() -> Iterator[str]:
    """The known drafts."""
    yield "| id | method | target | parameters | published acceptance length | k |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, row in DRAFTS.items():
        found = draft_named(name, target_named(row.target))
        lengths = ", ".join(f"{length:.2f} at k = {k}" for k, length in found.acceptance.lengths.items()) or "–"
        size = f"{found.shape.stored.total / 1e9:.2f}B"
        yield f"| {name} | {row.method} | {row.target} | {size} | {lengths} | {row.k or '–'} |"


def published() -> Iterator[str]:
    """Published speed-ups beside planned ones."""
    yield "| target | GPU | conversations | k | acceptance length | measured | planned | planned / measured | source |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in RUNS:
        gpu = f"{each.tp} x {each.gpu}" if each.tp > 1 else each.gpu
        share = each.planned / each.speedup
        cells = (each.target, gpu, each.level, each.k, each.length, each.speedup, f"{each.planned:.2f}", f"{share:.2f}")
        yield f"| {' | '.join(map(str, cells))} | {each.source} |"


TABLES = {"gpus": gpus, "models": models, "drafts": drafts, "published": published}


def fresh(text: str) -> str:
    """The page with every generated part made anew."""

    def made(found: re.Match[str]) -> str:
        kind, what = found[1], found[2]
        body = f"```\n$ {what}\n{output(what)}\n```" if kind == "plan" else "\n".join(TABLES[what]())
        return f"<!-- {kind}: {what} -->\n{body}\n<!-- end -->"

    return MARK.sub(made, text)


def main() -> int:
    """Write or check."""
    text = PAGE.read_text("utf-8")
    new = fresh(text)
    if "--check" in sys.argv:
        return int(new != text)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
