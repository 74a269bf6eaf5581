"""How much validate-config costs beyond an empty Typer command, measured in turns.

    python benchmarks/startup.py [--runs 15] [--limit-ms 60]

Starts both commands with this Python, one after the other, `--runs` times, and prints the medians of the wall time and
of the processor time (user and system), which a busy machine disturbs less, and their differences. Ends with status 1
where the difference of the wall times is above the limit."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EMPTY = """
import typer
app = typer.Typer(add_completion=False)
@app.command()
def nothing() -> None: pass
app()
"""
SETTING = "speculative_config: {decoding_type: NGram, max_draft_len: 4, max_matching_ngram_size: 3}\n"


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall and processor time of one start, in seconds; the command must succeed."""
    # An installed package has its bytecode; a shell that forbids to write it would time the compiler instead.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, begin = children_seconds(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begin, children_seconds() - before


def children_seconds() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--limit-ms", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty.py").write_text(EMPTY)
        (Path(folder) / "setting.yaml").write_text(SETTING)
        commands = {
            "empty Typer command": [sys.executable, str(Path(folder) / "empty.py")],
            "validate-config": [sys.executable, "-m", "specctl", "validate-config", str(Path(folder) / "setting.yaml")],
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for turn in range(options.runs + 1):
            for name, command in commands.items():
                taken = seconds(command)
                if turn:  # the first turn fills the caches
                    times[name].append(taken)
    medians = {
        name: [1000 * statistics.median(kind) for kind in zip(*taken, strict=True)] for name, taken in times.items()
    }
    print(f"{'':<22}{'wall':>11}{'processor':>14}")
    for name, (wall, processor) in medians.items():
        print(f"{name:<22}{wall:8.1f} ms{processor:11.1f} ms")
    wall, processor = (ours - empty for empty, ours in zip(*medians.values(), strict=True))
    print(f"{'difference':<22}{wall:8.1f} ms{processor:11.1f} ms (limit {options.limit_ms:g} ms wall)")
    return 0 if wall <= options.limit_ms else 1


if __name__ == "__main__":
    raise SystemExit(main())
