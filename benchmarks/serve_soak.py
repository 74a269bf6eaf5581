"""A server under clients that come, hang up and send nonsense: is any answer lost or mixed up, does memory grow?

    python -m benchmarks.serve_soak                                  # ten minutes, 64 clients, n-gram drafts
    python -m benchmarks.serve_soak --clients 256 --seconds 120

Ends with 1 where an answer was wrong, anything was left behind, or the median memory of the last minute is above that
of the fourth by more than 3 % or 32 MiB, whichever is more (runs of five minutes and longer).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import time
from statistics import median

import httpx

from benchmarks.serve_equality import METHODS
from benchmarks.serving import serving
from benchmarks.soak_load import soak

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

    def in_minute(self, begin: float) -> float:
        """Median of the minute that begins `begin` seconds after the start."""
        return median(size for at, size in self.found if begin <= at < begin + MINUTE)


def metric(url: str, name: str) -> float:
    """The sum of a metric's samples."""
    page = httpx.get(f"{url}/metrics", timeout=60).text.splitlines()
    return sum(float(line.split()[-1]) for line in page if line.split("{")[0].split(" ")[0] == name)


def left_behind(url: str) -> list[str]:
    """What a server still does or holds although nobody asks."""
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
    found = [f"{name} is {value:g}" for name in names if (value := metric(url, name))]
    begun = metric(url, "process_cpu_seconds_total")
    time.sleep(3)
    busy = metric(url, "process_cpu_seconds_total") - begun
    return [*found, f"{busy:.2f} s of CPU in 3 s"] if busy > 0.6 else found


def main() -> int:
    """Parse, load, look, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", default="demo")
    parser.add_argument("--method", default="ngram", help=f"none or of {', '.join(METHODS)}")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    order = parser.parse_args()
    setting = () if order.method == "none" else ("--speculative-config", json.dumps(METHODS[order.method]))
    with serving(order.target, *setting) as url:
        samples = Samples(url)
        tally = asyncio.run(soak(url, PROMPTS, order.clients, order.seconds, order.seed))
        samples.stop()
        left = left_behind(url)
    print(", ".join(f"{name}: {count}" for name, count in sorted(tally.counts.items())))
    for line in (*tally.wrong[:20], *left):
        print(f"  {line}")
    grown = False
    if order.seconds >= 5 * MINUTE:
        early, late = samples.in_minute(3 * MINUTE), samples.in_minute(order.seconds - MINUTE)
        grown = late > early + max(0.03 * early, 32 * 2**20)
        print(f"memory: {early / 2**20:.0f} MiB in minute 4, {late / 2**20:.0f} MiB in the last")
    return int(bool(tally.wrong or left or grown))


if __name__ == "__main__":
    sys.exit(main())
