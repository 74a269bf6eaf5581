"""Bodies, headers and paths that make no sense, by chance; seeded."""

from __future__ import annotations

import json
import random
from typing import Any

Nonsense = tuple[str, str, bytes, dict[str, str]]

GOOD: dict[str, Any] = {"model": "fake", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}]}
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    -1e308,
    "",
    "x",
    "\ud800",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
    [[]],
    [None],
]
FIELDS = [
    "model",
    "prompt",
    "messages",
    "n",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
]
FIELDS += ["response_format", "tools", "tool_choice", "logit_bias", "bad_words", "min_tokens", "echo", "top_logprobs"]
FIELDS += ["structured_outputs", "presence_penalty", "allowed_token_ids", "guided_json", "truncate_prompt_tokens"]
FIELDS += ["stop", "stop_token_ids", "max_tokens", "logprobs", "ignore_eos", "return_token_ids", "tokens", "\x00", "é"]
PATHS = ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/models/%2e%2e", "/a%00b", "//v1"]
METHODS = ["POST"] * 12 + ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"]
HEADERS = ["authorization", "content-type", "accept", "x-request-id", "content-encoding", "origin"]


def body(rng: random.Random) -> bytes:
    """Wrong fields, damaged JSON or noise."""
    kind = rng.random()
    if kind < 0.6:
        fields: dict[str, Any] = {"max_tokens": 2}  # some of it makes sense by chance, and must not take long
        fields |= {name: GOOD[name] for name in rng.sample(list(GOOD), rng.randint(0, 3))}
        fields |= {name: rng.choice(VALUES) for name in rng.sample(FIELDS, rng.randint(1, 4))}
        return json.dumps(fields).encode()
    if kind < 0.8:
        raw = bytearray(json.dumps(GOOD).encode())
        for _ in range(rng.randint(1, 5)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        return bytes(raw)
    return rng.randbytes(rng.randint(0, 200))


def calls(count: int, seed: int) -> list[Nonsense]:
    """`count` calls: method, path, body, headers."""
    rng = random.Random(seed)
    return [
        (
            rng.choice(METHODS),
            rng.choice(PATHS),
            body(rng),
            {rng.choice(HEADERS): rng.choice(["x", "bearer", "a" * 500])},
        )
        for _ in range(count)
    ]
