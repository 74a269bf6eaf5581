"""Memory of large tensors that goes back to the operating system while the tensor stays.

A cache is a range of addresses; the system gives it memory page by page as it is written. So a slot costs what was
written to it, until it is given back (the idea of vAttention, arXiv 2405.04437, with the system's own pages).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from mmap import PAGESIZE
from typing import Any

from torch import Tensor

_MADV_DONTNEED = 4  # of Linux: private memory reads as zeros afterwards


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def give_back(rows: Tensor) -> None:
    """Give back the whole pages inside ``rows``, a contiguous part of a tensor on the CPU; they read as zeros then.

    Does nothing on systems other than Linux.
    """
    libc = _libc()
    begin = -(-rows.data_ptr() // PAGESIZE) * PAGESIZE
    end = (rows.data_ptr() + rows.numel() * rows.element_size()) // PAGESIZE * PAGESIZE
    if libc is not None and end > begin:
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_DONTNEED)
