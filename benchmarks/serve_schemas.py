"""Do answers keep to their schemas with drafts on? Random schemas, each asked for once with every drafting method.

    python -m benchmarks.serve_schemas
    python -m benchmarks.serve_schemas --methods ngram,suffix,eagle3 --schemas 100

Ends with 1 where an answer that ended by itself does not validate, fewer than nine in ten ended by themselves, or no
draft was accepted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import httpx
import jsonschema

from benchmarks.request_mixes import Call
from benchmarks.schema_mixes import schemas
from benchmarks.serve_equality import METHODS, setting
from benchmarks.serving import ask, serving


def calls_for(wanted: Sequence[dict[str, Any]], max_tokens: int) -> list[Call]:
    """One chat call for each schema, greedy and sampled in turn."""
    question = "Give me an example as JSON."
    return [
        (
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": question}],
                "max_tokens": max_tokens,
                "temperature": index % 2,
                "seed": index,
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
            },
        )
        for index, schema in enumerate(wanted)
    ]


def ended(wanted: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]) -> int:
    """How many answers ended by themselves; raises ValidationError for one of them that does not validate."""
    found = 0
    for schema, answer in zip(wanted, answers, strict=True):
        choice = answer["choices"][0]
        if choice["finish_reason"] == "stop":
            jsonschema.validate(json.loads(choice["message"]["content"]), schema)
            found += 1
    return found


def accepted(url: str) -> float:
    """Accepted draft tokens of a server since its start."""
    page = httpx.get(f"{url}/metrics", timeout=30).text.splitlines()
    return sum(
        float(line.split()[-1]) for line in page if line.startswith("vllm:spec_decode_num_accepted_tokens_total")
    )


def main() -> int:
    """Parse, serve, validate, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--methods", default="ngram,suffix,draft_model", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--target", default="demo")
    parser.add_argument("--schemas", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=400)
    order = parser.parse_args()
    wanted = schemas(order.schemas, order.seed)
    failed = False
    for method in order.methods.split(","):
        with serving(order.target, *setting(method)) as url:
            found = ended(wanted, ask(url, calls_for(wanted, order.max_tokens), 16))
            tokens = accepted(url)
        print(f"{method}: {found} of {len(wanted)} ended and validate, {tokens:.0f} draft tokens accepted", flush=True)
        failed = failed or found < 0.9 * len(wanted) or not tokens
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
