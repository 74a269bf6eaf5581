"""Linear layers for a handful of rows.

A verify step multiplies each weight with 2 to 8 rows. BLAS libraries treat that shape badly: on CPUs the ordinary
call can cost twice as much for two rows as for one, and the transposed product half of that, or the reverse. Which
form is faster is a fact of the machine, so it is measured once for each weight shape and number of rows, on weights
that come from memory as they do in a step: from the cache the ordinary call wins where it loses in earnest.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

MAX_MEASURED_ROWS = 8
_REPEATS = 5

Product = Callable[[Tensor, Tensor], Tensor]


def _ordinary(rows: Tensor, weight: Tensor) -> Tensor:
    return F.linear(rows, weight)


def _transposed(rows: Tensor, weight: Tensor) -> Tensor:
    return torch.mm(weight, rows.t()).t().contiguous()


def _padded(rows: Tensor, weight: Tensor) -> Tensor:
    """The transposed product with rows of zeros up to a multiple of four, the width that kernels unroll to."""
    filled = rows.new_zeros(-(-rows.shape[0] // 4) * 4, rows.shape[1])
    filled[: rows.shape[0]] = rows
    return torch.mm(weight, filled.t())[:, : rows.shape[0]].t().contiguous()


_FORMS: tuple[Product, ...] = (_ordinary, _transposed, _padded)


def step_clock() -> float:
    """Seconds on a clock that stands still while forms are chosen: that happens once, and tells nothing of a step."""
    return time.perf_counter() - Linear.seconds_choosing


class Linear:
    """The linear layers of one model; ``weights`` are all of them, [out, in] each. ``seconds_choosing``: what all
    models of this process have spent on finding the fastest forms.
    """

    seconds_choosing: ClassVar[float] = 0.0

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._weights = list(weights)
        self._fastest: dict[tuple[int, torch.Size, int], Product] = {}

    def __call__(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``rows`` [T, in] times ``weight`` transposed, plus ``bias`` [out]: [T, out]."""
        count = rows.shape[0]
        if count > MAX_MEASURED_ROWS or weight.device.type != "cpu":
            return F.linear(rows, weight, bias)
        key = (count, weight.shape, torch.get_num_threads())
        product = self._fastest.get(key)
        if product is None:
            self._measure(count)
            product = self._fastest.setdefault(key, _ordinary)
        out = product(rows, weight)
        return out if bias is None else out + bias

    def _measure(self, count: int) -> None:
        """Find the fastest form of each shape for ``count`` rows, walking through all weights as a step does. The
        minimum shrugs off a busy machine.
        """
        began = time.perf_counter()
        rows = {weight.shape: torch.ones(count, weight.shape[1], dtype=weight.dtype) for weight in self._weights}
        best = {shape: [float("inf")] * len(_FORMS) for shape in rows}
        for _ in range(_REPEATS):
            for place, form in enumerate(_FORMS):
                for shape, seconds in self._walk(form, rows).items():
                    best[shape][place] = min(best[shape][place], seconds)
        threads = torch.get_num_threads()
        for shape, times in best.items():
            self._fastest[count, shape, threads] = _FORMS[times.index(min(times))]
        Linear.seconds_choosing += time.perf_counter() - began

    def _walk(self, form: Product, rows: dict[torch.Size, Tensor]) -> dict[torch.Size, float]:
        """Seconds that one pass over all weights spends on each shape."""
        spent: dict[torch.Size, float] = defaultdict(float)
        for weight in self._weights:
            start = time.perf_counter()
            form(rows[weight.shape], weight)
            spent[weight.shape] += time.perf_counter() - start
        return spent
