"""Thousands of calls that make no sense, to the demo target: a 4xx in the OpenAI error shape each, no 5xx, no hang.

python -m benchmarks.serve_fuzz --calls 5000
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter

import httpx

from benchmarks.nonsense import Nonsense, calls
from benchmarks.serving import serving


async def _ask(url: str, asked: list[Nonsense]) -> list[tuple[Nonsense, httpx.Response]]:
    limits = httpx.Limits(max_connections=20)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        answers = await asyncio.gather(*(client.request(m, p, content=c, headers=h) for m, p, c, h in asked))
    return list(zip(asked, answers, strict=True))


def wrong(answer: httpx.Response) -> bool:
    """Whether an answer is neither a good one nor an error in OpenAI's shape."""
    if answer.status_code < 400:
        return False
    shape = {"message", "type", "param", "code"}
    return answer.status_code >= 500 or set(answer.json().get("error", {})) != shape


def main() -> int:
    """Parse, ask, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    order = parser.parse_args()
    with serving("demo", "--max-queue", "100000") as url:
        found = asyncio.run(_ask(url, calls(order.calls, order.seed)))
        alive = httpx.get(f"{url}/health", timeout=60).status_code
    bad = [(call, answer) for call, answer in found if wrong(answer)]
    print(dict(sorted(Counter(answer.status_code for _, answer in found).items())), f"health {alive}")
    for call, answer in bad[:10]:
        print(f"  {call}: {answer.status_code} {answer.text[:200]}")
    return int(bool(bad) or alive != 200)


if __name__ == "__main__":
    sys.exit(main())
