"""Writes the measured parts of docs/bench.md: this machine's noise, a server against itself, a planted slow-down.

    python -m benchmarks.bench_page                                 # measures all and writes them between their marks
    python -m benchmarks.bench_page --only a-a
    python -m benchmarks.bench_page --vllm VENV/bin/vllm            # the comparison with vLLM's client, too

Each part says how busy the machine was. Leave it alone meanwhile: five minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.serving import serving
from specctl.bench.report import aligned, main_table, wrapped

PAGE = Path(__file__).parents[1] / "docs" / "bench.md"
MARK = re.compile(r"(<!-- measured: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
DRAFT = '{"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}'
# It wants 60 equal tokens and so never drafts: both sides do the same, and what differs is noise.
IDLE = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 60, "prompt_lookup_max": 60}'
SERVE = ("demo", "--threads", "1", "--no-enable-prefix-caching")
WORK = ("--prompts", "demo", "--num-prompts", "16", "--output-len", "32", "--repeats", "3")

Report = dict[str, Any]


def noise() -> str:
    """The spread of blocks and requests of plain decoding in process."""
    with tempfile.TemporaryDirectory() as folder:
        journal = f"{folder}/noise.jsonl"
        bench("--concurrency", "1,8", "--repeats", "3", "--threads", "1", "--output-len", "64",
              "--resume", journal, "--speculative-config", IDLE)  # fmt: skip
        return python("benchmarks/noise.py", journal).strip()


def against_itself() -> str:
    """An A/A run: one server, asked as baseline and as candidate in turns."""
    with serving(*SERVE) as url:
        return shown(bench("--url", url, "--baseline-url", url, "--concurrency", "1,8", *WORK))


def slowed() -> str:
    """A draft behind a proxy that makes answers three times as slow from 8 requests in flight on."""
    drafting = ("--speculative-config", DRAFT)
    with serving(*SERVE) as plain, serving(*SERVE, *drafting) as drafted, proxy(drafted, 8, 3.0) as slow:
        return shown(bench("--url", slow, "--baseline-url", plain, "--concurrency", "1,4,8", *drafting, *WORK))


PARTS: dict[str, Callable[[], str]] = {"noise": noise, "a-a": against_itself, "slow-down": slowed}


def bench(*words: str) -> Report:
    """The report of a run. A run that fails shows what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        python("-m", "specctl", "bench", "--quiet", "--output-json", str(file), *words)
        found: Report = json.loads(file.read_text("utf-8"))
        return found


def python(*words: str, may_fail: bool = False) -> str:
    """What a Python program prints; raises RuntimeError with all it said where it fails and may not."""
    print("$ python", *words, file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=PAGE.parents[1])
    if done.returncode not in (0, int(may_fail)):
        raise RuntimeError(f"it ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def proxy(to: str, level: int, factor: float) -> Iterator[str]:
    """The address of `slow_proxy` before a server, until the block ends."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = ["benchmarks/slow_proxy.py", "--to", to, "--port", str(port)]
    words += ["--from-concurrency", str(level), "--factor", str(factor)]
    with subprocess.Popen([sys.executable, *words], cwd=PAGE.parents[1]) as process:
        try:
            wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until something listens there. Raises RuntimeError where the process has ended."""
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the proxy ended with {process.returncode}")


def shown(report: Report) -> str:
    """The main table of a report and its verdict."""
    return f"{aligned(main_table(report))}\n\n{wrapped([report['verdict']['text']])}"


def written(text: str, parts: dict[str, str]) -> str:
    """The page with these parts between their marks. Raises KeyError for one without a mark."""
    known = {found[2] for found in MARK.finditer(text)}
    for name in parts:
        if name not in known:
            raise KeyError(f"the page has no mark for {name}")

    def made(found: re.Match[str]) -> str:
        return found[0] if found[2] not in parts else f"{found[1]}```\n{parts[found[2]]}\n```\n{found[3]}"

    return MARK.sub(made, text)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part alone")
    parser.add_argument("--vllm", help="program vllm of its virtual environment: compare with its client, too")
    given = parser.parse_args()
    wanted = {name: PARTS[name] for name in given.only or PARTS}
    if given.vllm:
        # What does not hold stands on the page, too.
        words = ("-m", "benchmarks.against_vllm_bench", "--vllm", given.vllm)
        wanted["vllm-client"] = lambda: python(*words, may_fail=True).strip()
    for name, measure in wanted.items():
        load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before"
        part = f"{load}\n\n{measure()}"
        PAGE.write_text(written(PAGE.read_text("utf-8"), {name: part}), "utf-8")


if __name__ == "__main__":
    main()
