"""Bootstrap intervals of a run's own figures, for the plots. Decisions use the paired ones of `compare`."""

from __future__ import annotations

from collections.abc import Sequence

RESAMPLES = 400
CONFIDENCE = 0.95


def mean_interval(values: Sequence[float], seed: int = 0) -> list[float] | None:
    """The 95 % interval of the mean of `values`; None with fewer than two."""
    return ratio_interval(values, [1.0] * len(values), seed)


def ratio_interval(above: Sequence[float], below: Sequence[float], seed: int = 0) -> list[float] | None:
    """The 95 % interval of sum(above) / sum(below), pairs drawn with replacement; None with fewer than two pairs."""
    import numpy as np

    if len(above) < 2 or sum(below) <= 0:
        return None
    draws = np.random.default_rng(seed).integers(0, len(above), (RESAMPLES, len(above)))
    tops, bottoms = np.asarray(above)[draws].sum(axis=1), np.asarray(below)[draws].sum(axis=1)
    good = bottoms > 0
    ends = np.quantile(tops[good] / bottoms[good], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return [float(end) for end in ends]
