"""How long networks take in the steps of an engine: the target's forward, and all that a draft's network does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from specctl.runtime.engine import Engine

# What the networks of `specctl.runtime.models` are asked to compute.
_FORWARDS = ("forward", "forward_tapped", "enter", "keep", "fill")


@dataclass(frozen=True)
class StepCosts:
    """Sums over steps that verified one sequence alone; no prefill among them.

    ``target_s``: seconds in the target's forward. ``draft_s``: in the draft's network, 0 for a search.
    """

    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    target_s: float = 0.0
    draft_s: float = 0.0

    def __add__(self, other: StepCosts) -> StepCosts:
        return StepCosts(
            self.steps + other.steps,
            self.drafted + other.drafted,
            self.accepted + other.accepted,
            self.target_s + other.target_s,
            self.draft_s + other.draft_s,
        )


class Meter:
    """Reads the steps of engines that take turns on one target; ``costs``: what it has read since `reset`."""

    def __init__(self) -> None:
        self.costs = StepCosts()
        self._seconds = {"target": 0.0, "draft": 0.0}
        self._watched: set[int] = set()

    def reset(self) -> None:
        """Begin anew."""
        self.costs = StepCosts()

    def watch(self, engine: Engine) -> None:
        """From now on time the networks of ``engine`` and take note of its steps."""
        self._time(engine.target.model, "target")
        for part in vars(engine.proposer).values() if engine.proposer else ():
            if any(hasattr(type(part), name) for name in _FORWARDS):
                self._time(part, "draft")
        step = engine.step

        def noted() -> Any:
            before, began = engine.stats.copy(), dict(self._seconds)
            emissions = step()
            done = engine.stats - before
            if done.num_verify_steps == 1:
                spent = {kind: self._seconds[kind] - began[kind] for kind in began}
                counts = done.num_draft_tokens, done.num_accepted_tokens
                self.costs += StepCosts(1, *counts, spent["target"], spent["draft"])
            return emissions

        engine.step = noted  # type: ignore[method-assign]

    def _time(self, network: Any, kind: str) -> None:
        """Put a clock around the network's calls, once."""
        if id(network) in self._watched:
            return
        self._watched.add(id(network))
        for name in _FORWARDS:
            if hasattr(network, name):
                setattr(network, name, self._timed(getattr(network, name), kind))

    def _timed(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = _now()
            try:
                return call(*args, **kwargs)
            finally:
                self._seconds[kind] += _now() - began

        return timed


def _now() -> float:
    """Seconds, once the device has done what it was told."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return perf_counter()
