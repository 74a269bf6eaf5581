"""Requests with random mixes of every option, and what their answers are compared by."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Call = tuple[str, dict[str, Any]]

TEXT = "the harbour was quiet when the boats came in and the harbour light went out again abc abc abc 12 12 12"
WORDS = TEXT.split()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "size": {"enum": [1, 2, 3]}},
    "required": ["name", "size"],
    "additionalProperties": False,
}


def mixes(count: int, seed: int, vocab_size: int, longest: int = 24) -> list[Call]:
    """`count` calls, each `(path, body)`; `longest`: the most new tokens of one."""
    draw = random.Random(seed)
    return [_call(draw, index, vocab_size, longest) for index in range(count)]


def _call(draw: random.Random, index: int, vocab_size: int, longest: int) -> Call:
    chat = draw.random() < 0.4
    text = " ".join(draw.choices(WORDS, k=draw.randrange(1, 12)))
    body: dict[str, Any] = {"temperature": draw.choice([0, 0, 0.7, 1.3]), "seed": index, "return_token_ids": True}
    body["max_tokens"] = draw.randrange(1, longest + 1)
    for name, (chance, make) in _options(draw, vocab_size, body["max_tokens"]).items():
        if draw.random() < chance:
            body[name] = make()
    if draw.random() < 0.15:
        body["response_format"] = draw.choice(
            [
                {"type": "json_object"},
                {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
                {"type": "regex", "regex": "(ab|[0-9]){2,8}"},
            ]
        )
    else:
        body["ignore_eos"] = draw.random() < 0.4
    body["stream"] = draw.random() < 0.5
    if body["stream"]:
        body["stream_options"] = {"include_usage": True}
    if chat:
        body["messages"] = [{"role": "user", "content": text}]
        if draw.random() < 0.4:
            body |= {"logprobs": True, "top_logprobs": draw.randrange(4)}
        return "/v1/chat/completions", body
    body["prompt"] = draw.choice([text, [text, text[::-1]]])
    if draw.random() < 0.4:
        body["logprobs"] = draw.randrange(4)
    if not (body["stream"] and "logprobs" in body):
        body["echo"] = draw.random() < 0.3
    return "/v1/completions", body


def _options(draw: random.Random, vocab_size: int, most: int) -> Mapping[str, tuple[float, Callable[[], Any]]]:
    def ids(count: int) -> list[int]:
        return [draw.randrange(vocab_size) for _ in range(count)]

    return {
        "n": (0.2, lambda: draw.randrange(1, 4)),
        "top_p": (0.3, lambda: draw.uniform(0.5, 1)),
        "top_k": (0.3, lambda: draw.randrange(1, 60)),
        "min_p": (0.3, lambda: draw.uniform(0, 0.2)),
        "presence_penalty": (0.3, lambda: draw.uniform(-2, 2)),
        "frequency_penalty": (0.3, lambda: draw.uniform(-2, 2)),
        "repetition_penalty": (0.3, lambda: draw.choice([0.9, 1.1, 1.4])),
        "logit_bias": (0.2, lambda: {str(token): draw.uniform(-20, 6) for token in ids(8)}),
        "bad_words": (0.2, lambda: draw.sample(WORDS, 3)),
        "stop": (0.3, lambda: draw.sample([*"aeiou", "the", " a", "harbour"], 2)),
        "stop_token_ids": (0.2, lambda: ids(6)),
        "min_tokens": (0.2, lambda: draw.randrange(0, most + 1)),
        "include_stop_str_in_output": (0.2, lambda: True),
        "skip_special_tokens": (0.2, lambda: False),
        "truncate_prompt_tokens": (0.1, lambda: draw.randrange(1, 9)),
    }


def difference(left: Mapping[str, Any], right: Mapping[str, Any], tolerance: float) -> str | None:
    """Where two answers differ: in anything at all, in log probabilities by more than `tolerance`."""
    return _difference(left, right, tolerance, "")


# What may differ: names made anew for each answer, and how much of a prompt a cache held.
_OWN = frozenset({"id", "created", "prompt_tokens_details", "metrics"})


def _difference(left: Any, right: Any, tolerance: float, place: str) -> str | None:
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() - _OWN != right.keys() - _OWN:
            return f"{place}: keys {sorted(left)} and {sorted(right)}"
        parts = [(left[key], right[key], f"{place}.{key}") for key in left if key not in _OWN]
    elif isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return f"{place}: {len(left)} and {len(right)} entries"
        parts = [(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True))]
    elif isinstance(left, float) and isinstance(right, float):
        return None if math.isclose(left, right, rel_tol=0, abs_tol=tolerance) else f"{place}: {left} and {right}"
    else:
        return None if left == right else f"{place}: {left!r} and {right!r}"
    return next((found for a, b, where in parts if (found := _difference(a, b, tolerance, where))), None)


def joined(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The events of a stream as one answer: texts, ids and log probabilities in order, reasons and usage."""
    choices: dict[int, dict[str, Any]] = {}
    usage = None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            _join(choices.setdefault(choice["index"], {"text": "", "token_ids": [], "logprobs": {}}), choice)
    return {"choices": [choices[index] for index in sorted(choices)], "usage": usage}


def _join(found: dict[str, Any], choice: Mapping[str, Any]) -> None:
    found["text"] += choice.get("text") or (choice.get("delta") or {}).get("content") or ""
    found["token_ids"] += choice.get("token_ids") or []
    for key, values in (choice.get("logprobs") or {}).items():
        if values is not None:
            found["logprobs"].setdefault(key, []).extend(values)
    if choice.get("finish_reason"):
        found |= {"finish_reason": choice["finish_reason"], "stop_reason": choice.get("stop_reason")}
