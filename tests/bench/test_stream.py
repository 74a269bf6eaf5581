"""Streams as odd servers write them: read where they can be, failed with the reason where they cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specctl.bench.records import Record
from specctl.bench.stream import Answer, request_counters
from tests.bench.scripted_server import Script
from tests.bench.stand_ins import Clock, job
from tests.bench.test_endpoint import job as question
from tests.bench.test_endpoint import run

USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def event(body: Any) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def said(text: str, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"delta": {"content": text}, "finish_reason": finish}]} | more)


def read(*parts: bytes) -> Record:
    record = Record(job(), 0.0)
    answer = Answer(record, Clock())
    for part in parts:
        answer.feed(part)
    answer.end(None)
    return record


END = (said("b", "stop"), event(USAGE), b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "parts",
    [
        (b": ping\n\n", said("a"), b": ping\n\n", *END),
        (said("a").replace(b"data: ", b"data:"), *END),
        tuple(part.replace(b"\n", b"\r\n") for part in (said("a"), *END)),
        (said("a"), *END[:2]),
        (b"event: message\n" + said("a"), *END),
        (*(bytes([byte]) for byte in said("a")), *END),
        (event({"choices": [{"delta": {"role": "assistant"}}], "usage": None}), said("a"), *END),
        (event({"choices": [None]}), said("a"), *END),
        (event({"choices": {"0": 1}}), said("a"), *END),
        (said("a", usage={"prompt_tokens": 3, "completion_tokens": 1}), *END),
    ],
)
def test_what_can_be_read(parts: tuple[bytes, ...]) -> None:
    record = read(*parts)
    assert (record.error, record.text, record.num_tokens, record.num_prompt_tokens) == (None, "ab", 2, 3)


def test_counts_that_are_none_are_unknown() -> None:
    record = read(said("a"), said("b", "stop"), event({"usage": {"prompt_tokens": "3", "completion_tokens": -2}}))
    assert (record.error, record.num_tokens, record.tpot_s) == (None, None, None)


def test_ids_that_are_no_numbers_are_none() -> None:
    odd = event({"choices": [{"delta": {"content": "a"}, "token_ids": ["x", None]}]})
    assert read(odd, *END).token_ids == []


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((said("a"), b"data: {broken\n\n", *END), "not JSON"),
        ((b'data: {"choices": "\xff"}\n\n', *END), "not JSON"),
        ((event([1, 2]), *END), "no object"),
        ((said("a"),), "the stream ended before the answer did"),
        ((), "the stream ended before the answer did"),
        ((event({"error": {"message": "the worker died"}}),), "the worker died"),
    ],
)
def test_what_cannot_be_read_fails_the_request(parts: tuple[bytes, ...], why: str) -> None:
    assert why in (read(*parts).error or "")


@pytest.mark.parametrize("histogram", [{"-1": 3, "2": 1}, {"99999999999": 1}, "abc", [None], {"x": 1}])
def test_counters_that_make_no_sense_are_none(histogram: Any) -> None:
    told = {"speculative_decoding": {"acceptance_histogram": histogram, "num_draft_tokens": 3}}
    assert request_counters({"metrics": told}) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("page", "the server answered with text/html, not with a stream of events"),
        ("moved", "HTTP 404 (redirected to http://127.0.0.1:"),
        ("circle", "redirected in a circle, to http://127.0.0.1:"),
    ],
)
def test_answers_that_are_no_stream(text: str, why: str) -> None:
    [record] = run(Script(), question(text)).records
    assert why in (record.error or "")
