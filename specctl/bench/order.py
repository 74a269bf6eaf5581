"""What the user asked a bench to do, read and checked as far as that goes without loading a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specctl.bench.arrivals import Arrivals
from specctl.bench.lengths import Lengths
from specctl.bench.results import Report
from specctl.bench.server import Endpoint
from specctl.bench.workloads import Workload
from specctl.errors import UsageError
from specctl.spec.config import SpecDecodeConfig

Start = Callable[[SpecDecodeConfig | None], AbstractContextManager[Endpoint]]
"""Starts a server with a setting (None: plain decoding), waits until it answers, and stops it in the end."""


@dataclass(frozen=True)
class Servers:
    """Servers that are measured in place of the bundled engine.

    Either `candidate` runs already, `baseline` too where there is one to compare with; or `start` starts one after the
    other. `tokenizer`: a folder to count tokens with where a stream does not say how many it holds. `near_tie`: logits.
    """

    candidate: Endpoint | None = None
    baseline: Endpoint | None = None
    start: Start | None = None
    tokenizer: str | None = None
    near_tie: float = 0.25


@dataclass(frozen=True)
class Order:
    """What the user asked for. `lenient`: settings that cannot run on this target are left out and named."""

    target: str
    specs: Sequence[SpecDecodeConfig]
    workload: Workload
    concurrency: tuple[int, ...]
    repeats: int
    warmup: int
    sampling: dict[str, Any]
    seed: int
    peers: Sequence[str] = ()
    peer_k: int = 4
    peer_draft: str | None = None
    check_outputs: bool = True
    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None
    time_limit_s: float | None = None
    num_prompts: int | None = None
    arrivals: Arrivals | None = None
    capped: bool = True
    precision: float | None = None
    lengths: Lengths | None = None
    promises: Mapping[str, float] = field(default_factory=dict)
    journal: Path | None = None
    servers: Servers | None = None
    lenient: bool = False
    measured_length: bool = False
    draft_check: bool = True

    def __post_init__(self) -> None:
        prompts = self.prompts_a_level
        if max(self.concurrency) > prompts:
            raise UsageError(
                f"{prompts} prompts cannot keep {max(self.concurrency)} requests in flight",
                help="ask for more with --num-prompts, or for a lower --concurrency",
            )

    @property
    def prompts_a_level(self) -> int:
        """Requests of one repeat at one level."""
        return (self.num_prompts or len(self.workload.prompts)) * (
            1 if self.lengths is None else len(self.lengths.tokens)
        )


@dataclass(frozen=True)
class Outcome:
    """The report, and what belongs beside it.

    `failures`: why requests failed, one line each, without repeats. `notes`: where the runtime does otherwise than the
    engine whose setting was measured. `kept`: the setting that the verdict keeps.
    """

    report: Report
    interrupted: bool
    failures: list[str]
    notes: list[str]
    kept: SpecDecodeConfig | None = None
