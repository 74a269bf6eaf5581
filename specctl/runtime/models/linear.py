"""Linear layers for a handful of rows.

A verify step multiplies each weight with 2 to 8 rows. BLAS libraries treat that shape badly: on CPUs the ordinary
call can cost twice as much for two rows as for one, and the transposed product half of that, or the reverse. Which
form is faster is a fact of the machine, so it is measured once for each weight shape and number of rows.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

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


class Linear:
    """The linear layers of one model; ``weights`` are all of them, [out, in] each."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self._alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for weight in weights:
            self._alike[weight.shape].append(weight)
        self._fastest: dict[tuple[int, torch.Size, int], Product] = {}

    def __call__(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``rows`` [T, in] times ``weight`` transposed, plus ``bias`` [out]: [T, out]."""
        count = rows.shape[0]
        if count > MAX_MEASURED_ROWS or weight.device.type != "cpu":
            return F.linear(rows, weight, bias)
        key = (count, weight.shape, torch.get_num_threads())
        product = self._fastest.get(key)
        if product is None:
            product = self._fastest[key] = self._measure(count, weight)
        out = product(rows, weight)
        return out if bias is None else out + bias

    def _measure(self, count: int, weight: Tensor) -> Product:
        """The fastest form over all weights of this shape in turn, as a step walks through them: one weight again and
        again would stand in the processor's cache and tell another story. The minimum shrugs off a busy machine.
        """
        rows = torch.ones(count, weight.shape[1], dtype=weight.dtype)
        best = [float("inf")] * len(_FORMS)
        for _ in range(_REPEATS):
            for place, form in enumerate(_FORMS):
                start = time.perf_counter()
                for alike in self._alike[weight.shape]:
                    form(rows, alike)
                best[place] = min(best[place], time.perf_counter() - start)
        return _FORMS[best.index(min(best))]
