"""A server under clients that come, hang up and send nonsense: is any answer lost or mixed up, does memory grow?

    python -m benchmarks.serve_soak                                  # ten minutes, 64 clients, n-gram drafts
    python -m benchmarks.serve_soak --clients 256 --seconds 120

Prints a verdict on four things: answers (none lost, mixed up or 5xx), what is left behind (requests, KV blocks, a busy
CPU), and memory: the median of the last minute may be above that of minute 4 by 3 % or 32 MiB, whichever is more (runs
of five minutes and longer). Ends with 1 where one of them fails.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import httpx

from benchmarks.serve_equality import METHODS, setting
from benchmarks.serving import serving
from benchmarks.soak_load import KINDS, Tally, soak

PROMPTS = [
    "The harbour was quiet when",
    "abc abc abc abc",
    "def total(items):",
    "One, two, three, four,",
    "The ship and the ship and",
    "What is 17 plus 25?",
    "naïve café",
    "x",
]
MINUTE = 60.0
IDLE_S = 3.0  # for how long the server is watched after the load


class Samples:
    """`(seconds, bytes)` of the server's memory, every two seconds until `stop`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopped = threading.Event()
        self.found: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        start = time.monotonic()
        while not self._stopped.wait(2):
            self.found.append((time.monotonic() - start, metric(self._url, "process_resident_memory_bytes")))

    def stop(self) -> None:
        """No more of them."""
        self._stopped.set()
        self._thread.join()


@dataclass(frozen=True)
class Growth:
    """Bytes of memory: the medians of minute 4 and of the last minute."""

    early: float
    late: float

    @property
    def allowed(self) -> float:
        """What the last minute may have."""
        return self.early + max(0.03 * self.early, 32 * 2**20)

    @property
    def is_too_much(self) -> bool:
        """Whether memory grew as a leak makes it grow."""
        return self.late > self.allowed


def growth(samples: Sequence[tuple[float, float]], seconds: float) -> Growth | None:
    """Growth over a run of so many seconds from `(seconds, bytes)`; None for one that is too short to tell."""

    def in_minute(begin: float) -> float:
        return median(size for at, size in samples if begin <= at < begin + MINUTE)

    return Growth(in_minute(3 * MINUTE), in_minute(seconds - MINUTE)) if seconds >= 5 * MINUTE else None


def metric(url: str, name: str) -> float:
    """The sum of a metric's samples."""
    page = httpx.get(f"{url}/metrics", timeout=60).text.splitlines()
    return sum(float(line.split()[-1]) for line in page if line.split("{")[0].split(" ")[0] == name)


def left_behind(url: str) -> list[str]:
    """What a server still does or holds although nobody asks."""
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    found = [f"{name} is {value:g}" for name in names if (value := metric(url, name))]
    begun = metric(url, "process_cpu_seconds_total")
    time.sleep(IDLE_S)
    busy = metric(url, "process_cpu_seconds_total") - begun
    return [*found, f"{busy:.2f} s of CPU in {IDLE_S:g} s"] if busy > 0.2 * IDLE_S else found


def verdict(tally: Tally, left: Sequence[str], grown: Growth | None) -> tuple[list[str], bool]:
    """The lines that tell how a run went, and whether all is well."""
    lines = [", ".join(f"{name}: {count}" for name, count in sorted(tally.counts.items()))]
    lines += [f"  {line}" for line in tally.wrong[:20]]
    faults = ", ".join(f"{tally.of_kind(kind)} {kind}" for kind in KINDS)
    lines.append(f"answers      {faults}")
    lines.append(f"left behind  {', '.join(left) or 'nothing: no request, no KV block, an idle CPU'}")
    if grown is None:
        lines.append("memory       no verdict on a run of less than five minutes")
    else:
        early, late, allowed = (round(size / 2**20) for size in (grown.early, grown.late, grown.allowed))
        lines.append(f"memory       median {early} MiB in minute 4, {late} MiB in the last; {allowed} MiB are allowed")
    well = not (tally.wrong or left or (grown and grown.is_too_much))
    return [*lines, f"verdict      {'pass' if well else 'FAIL'}"], well


def main() -> int:
    """Parse, load, look, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", default="demo")
    parser.add_argument("--method", default="ngram", help=f"none or of {', '.join(METHODS)}")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    order = parser.parse_args()
    drafting = () if order.method == "none" else setting(order.method)
    with serving(order.target, *drafting) as url:
        samples = Samples(url)
        tally = asyncio.run(soak(url, PROMPTS, order.clients, order.seconds, order.seed))
        samples.stop()
        left = left_behind(url)
    lines, well = verdict(tally, left, growth(samples.found, order.seconds))
    print("\n".join(lines))
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
