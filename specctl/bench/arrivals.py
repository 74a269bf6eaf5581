"""When requests arrive, where they do not wait for each other: Poisson or gamma, or as a trace says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specctl.bench.prompt_rows import Prompt
from specctl.errors import UsageError


@dataclass(frozen=True)
class Arrivals:
    """`request_rate` requests a second, `burstiness` 1 for Poisson, below 1 for bursts, above 1 for regularity.

    With `trace` every prompt brings its own time (`Prompt.at_s`), `speed` times as fast.
    """

    request_rate: float | None = None
    burstiness: float = 1.0
    trace: bool = False
    speed: float = 1.0

    def __post_init__(self) -> None:
        wrong = {"--request-rate": self.request_rate, "--burstiness": self.burstiness, "--trace-speed": self.speed}
        for option, value in wrong.items():
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{option} is {value:g}; it must be a number above 0")

    def offsets(self, prompts: Sequence[Prompt], seed: int) -> list[float]:
        """Seconds after the start at which each prompt is sent, in their order."""
        if self.trace:
            first = min(prompt.at_s or 0.0 for prompt in prompts)
            return [((prompt.at_s or 0.0) - first) / self.speed for prompt in prompts]
        assert self.request_rate is not None
        return gamma_offsets(self.request_rate, self.burstiness, len(prompts), seed)


def gamma_offsets(rate: float, burstiness: float, count: int, seed: int) -> list[float]:
    """Arrival times with gamma-distributed gaps of shape `burstiness` and mean 1 / `rate`.

    They are stretched so that the last arrives at `count / rate`, as vLLM's client does (vllm/benchmarks/serve.py):
    every seed then offers the same load.
    """
    import numpy as np

    gaps = np.random.default_rng(seed).gamma(burstiness, 1 / (rate * burstiness), count)
    times = np.cumsum(gaps)
    return [float(time) for time in times * (count / rate / times[-1])]


def check_trace(prompts: Sequence[Prompt]) -> None:
    """Raise `UsageError` where rows of a trace have no timestamp."""
    missing = [prompt.id for prompt in prompts if prompt.at_s is None]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UsageError(f"--trace: row {missing[0]}{more} has no timestamp", help='add "timestamp": seconds')
