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
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["x", 1]}}}, "required": ["a"]}
# Bodies that are right, and deep: one thing in them is made wrong.
DEEP: list[dict[str, Any]] = [
    {"prompt": "hi", "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
    {"prompt": [[1, 2], [3]], "logit_bias": {"5": 1.5}, "stream": True, "stream_options": {"include_usage": True}},
    {"prompt": "hi", "structured_outputs": {"choice": ["a", "b"]}, "stop": ["x", "y"], "stop_token_ids": [1]},
    {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "hi"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "strict": True, "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    },
]
KEYS = ["\ud800", "", "a" * 100, "type", "$ref", "x-guidance", "name", "\x00"]
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


def spoiled(rng: random.Random, value: Any) -> Any:
    """The value with one thing inside it replaced, renamed, added or taken away."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.2:
        return rng.choice(VALUES)
    if isinstance(value, list):
        place = rng.randrange(len(value))
        return [spoiled(rng, item) if index == place else item for index, item in enumerate(value)]
    chosen, way = rng.choice(list(value)), rng.random()
    if way < 0.1:
        return {key: item for key, item in value.items() if key != chosen}
    if way < 0.25:
        return value | {rng.choice(KEYS): rng.choice(VALUES)}
    return {key: spoiled(rng, item) if key == chosen else item for key, item in value.items()}


def body(rng: random.Random) -> bytes:
    """Wrong fields, one fault deep inside, damaged JSON or noise."""
    kind = rng.random()
    if kind < 0.3:
        wrong = spoiled(rng, rng.choice(DEEP))
        return json.dumps({"max_tokens": 2} | wrong if isinstance(wrong, dict) else wrong).encode()
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
