"""Does a draft change an answer? Random mixes of every option, served one at a time without a draft and all at once
with each drafting method; greedy requests, and sampled ones with coupled noise.

    python -m benchmarks.serve_equality                       # the demo target in float64: equal, log probabilities too
    python -m benchmarks.serve_equality --dtype float32 --allowed 2 --tolerance 2e-3

Ends with 1 where more answers differ than `--allowed` says.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.request_mixes import difference, mixes
from benchmarks.serving import ask, serving

METHODS: dict[str, dict[str, Any]] = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4},
    "suffix": {"method": "suffix", "num_speculative_tokens": 8},
    "draft_model": {"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4},
    "eagle": {"method": "eagle", "model": "demo-eagle", "num_speculative_tokens": 4},
    "eagle3": {"method": "eagle3", "model": "demo-eagle3", "num_speculative_tokens": 4},
    "mtp": {"method": "mtp", "model": "demo-mtp", "num_speculative_tokens": 2},
    "medusa": {"method": "medusa", "model": "demo-medusa", "num_speculative_tokens": 3},
    "mlp_speculator": {"method": "mlp_speculator", "model": "demo-mlp-speculator", "num_speculative_tokens": 3},
    "pard": {"method": "draft_model", "model": "demo-pard", "parallel_drafting": True, "num_speculative_tokens": 4},
    "dflash": {"method": "dflash", "model": "demo-dflash", "num_speculative_tokens": 4},
}


def setting(method: str) -> tuple[str, ...]:
    """The arguments that set a method: in vLLM's words, in our own where vLLM 0.31 has the word and refuses it."""
    if method != "mlp_speculator":
        return ("--speculative-config", json.dumps(METHODS[method]))
    file = Path(tempfile.mkdtemp(), "setting.yaml")
    file.write_text(json.dumps({"specctl": 1} | METHODS[method]), "utf-8")
    return ("--spec", str(file))


def main() -> int:
    """Parse, serve, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    parser.add_argument("--target", default="demo")
    parser.add_argument("--vocab-size", type=int, default=2048, help="token ids to draw from")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--tolerance", type=float, default=1e-8)
    parser.add_argument("--allowed", type=int, default=0, help="answers that may differ (near-ties)")
    order = parser.parse_args()
    calls = mixes(order.requests, order.seed, order.vocab_size)
    common = (order.target, "--dtype", order.dtype, "--coupled")
    with serving(*common, "--no-enable-prefix-caching") as url:
        plain = ask(url, calls, 1)
    worst = 0
    for method in order.methods.split(","):
        with serving(*common, *setting(method)) as url:
            drafted = ask(url, calls, order.at_once)
        found = [(i, difference(a, b, order.tolerance)) for i, (a, b) in enumerate(zip(plain, drafted, strict=True))]
        differing = [(index, where) for index, where in found if where]
        print(f"{method}: {len(calls) - len(differing)} of {len(calls)} answers are equal", flush=True)
        for index, where in differing[:10]:
            print(f"  request {index}: {where}")
        worst = max(worst, len(differing))
    return 1 if worst > order.allowed else 0


if __name__ == "__main__":
    sys.exit(main())
