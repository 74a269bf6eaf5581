"""What is refused, and how: OpenAI's error shape, the field by name, nothing ignored, nothing private repeated."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from specctl.server.field_rows import CHAT_NEUTRAL, COMPLETION_NEUTRAL
from tests.server.fake_engine import FakeEngine, FakeTarget
from tests.server.live import Live, live

CHAT: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
TEXT: dict[str, Any] = {"model": "fake", "prompt": "hi", "max_tokens": 2}


def error_of(answer: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The error object, after checking status and shape."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert "Traceback" not in answer.text
    found: dict[str, Any] = body["error"]
    return found


UNSUPPORTED: list[tuple[str, Any]] = [
    ("functions", [{"name": "f"}]),
    ("best_of", 2),
    ("reasoning_effort", "high"),
    ("modalities", ["audio"]),
    ("use_beam_search", True),
    ("store", True),
    ("continue_final_message", True),
    ("chat_template", "x"),
    ("priority", 1),
]


@pytest.mark.parametrize(("field", "value"), UNSUPPORTED)
def test_unsupported_chat_fields_are_refused_by_name(fake: Live, field: str, value: Any) -> None:
    error = error_of(fake.post("/v1/chat/completions", json=CHAT | {field: value}))
    assert error["param"] == field
    assert field in error["message"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported_parameter")


@pytest.mark.parametrize(("field", "value"), [("suffix", "x"), ("top_logprobs", 1), ("best_of", 3)])
def test_unsupported_completion_fields(fake: Live, field: str, value: Any) -> None:
    assert error_of(fake.post("/v1/completions", json=TEXT | {field: value}))["param"] == field


@pytest.mark.parametrize("path", ["chat/completions", "completions"])
def test_neutral_values_are_fine(fake: Live, path: str) -> None:
    body, table = (CHAT, CHAT_NEUTRAL) if path.startswith("chat") else (TEXT, COMPLETION_NEUTRAL)
    for field, values in table.items():
        for value in (None, *values):
            answer = fake.post(f"/v1/{path}", json=body | {field: value})
            assert answer.status_code == 200, (field, value, answer.text)
    more = {"presence_penalty": 0.0, "n": 1, "user": "u", "seed": None, "stop": [], "top_k": -1, "stream": False}
    assert fake.post(f"/v1/{path}", json=body | more).status_code == 200


@pytest.mark.parametrize(("field", "hint"), [("temprature", "temperature"), ("max_token", "max_tokens"), ("zzz", None)])
def test_unknown_fields(fake: Live, field: str, hint: str | None) -> None:
    error = error_of(fake.post("/v1/completions", json=TEXT | {field: 1}))
    assert (error["param"], error["code"]) == (field, "unknown_parameter")
    assert hint is None or f"did you mean '{hint}'" in error["message"]


WRONG: list[tuple[str, Any]] = [
    ("temperature", "0"),
    ("temperature", True),
    ("temperature", -1),
    ("temperature", 1e999),
    ("top_p", 0),
    ("top_p", 2),
    ("min_p", -0.1),
    ("top_k", 1.5),
    ("top_k", -2),
    ("n", 0),
    ("n", 129),
    ("n", "2"),
    ("seed", 1.5),
    ("seed", 2**64),
    ("max_tokens", 0),
    ("max_tokens", True),
    ("max_tokens", "5"),
    ("max_completion_tokens", -1),
    ("stop", 5),
    ("stop", ""),
    ("stop", ["a"] * 33),
    ("stop_token_ids", [1.5]),
    ("stop_token_ids", [10**6]),
    ("stream", "yes"),
    ("echo", True),
    ("stream_options", {"include_usage": True}),
    ("ignore_eos", 1),
    ("return_token_ids", "x"),
    ("user", 5),
    ("model", 5),
    ("messages", "hi"),
    ("messages", []),
    ("messages", None),
    ("min_tokens", -1),
    ("min_tokens", 3),
    ("presence_penalty", 2.5),
    ("frequency_penalty", "1"),
    ("repetition_penalty", 0),
    ("logit_bias", [1]),
    ("logit_bias", {"x": 1}),
    ("logit_bias", {"5": 101}),
    ("logit_bias", {"999999": 1}),
    ("allowed_token_ids", []),
    ("allowed_token_ids", [10**6]),
    ("bad_words", "a"),
    ("bad_words", [""]),
    ("logprobs", 1),
    ("top_logprobs", 1),
    ("top_logprobs", 21),
    ("prompt_logprobs", -1),
    ("truncate_prompt_tokens", 0),
    ("skip_special_tokens", 1),
    ("tools", {}),
    ("tools", [{"type": "function", "function": {}}]),
    ("tools", [{"type": "retrieval"}]),
    ("tools", [{"type": "function", "function": {"name": "f", "parameters": {"typ": "object"}}}]),
    ("tool_choice", "required"),
    ("parallel_tool_calls", 1),
    ("response_format", "json"),
    ("response_format", {"type": "xml"}),
    ("response_format", {"type": "json_schema", "json_schema": {"schema": {}}}),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {"minLenght": 1}}}),
    ("response_format", {"type": "regex"}),
    ("structured_outputs", {}),
    ("structured_outputs", {"json": {}, "regex": "a"}),
    ("structured_outputs", {"whitespace_pattern": "x"}),
    ("guided_choice", []),
    ("guided_json", "{"),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_wrong_values_name_the_field(fake: Live, field: str, value: Any) -> None:
    raw = json.dumps(CHAT | {field: value})
    error = error_of(fake.post("/v1/chat/completions", content=raw.replace("Infinity", "1e999")))
    assert error["param"] == field or error["param"].startswith((f"{field}[", f"{field}."))
    assert error["param"] in error["message"]


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hi", "messages[0]"),
        ({"content": "hi"}, "messages[0].role"),
        ({"role": "critic", "content": "hi"}, "messages[0].role"),
        ({"role": "user", "content": "hi", "tool_calls": [{}]}, "messages[0].tool_calls"),
        ({"role": "user", "content": "hi", "tool_call_id": "x"}, "messages[0].tool_call_id"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": "hi", "name": 5}, "messages[0].name"),
        ({"role": "user", "content": "hi", "weight": 1}, "messages[0].weight"),
        ({"role": "assistant", "content": "hi", "tool_calls": [{}]}, "messages[0].tool_calls[0].function"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        ({"role": "user", "content": "\ud800"}, "messages[0].content"),
    ],
)
def test_messages(fake: Live, message: Any, param: str) -> None:
    assert (
        error_of(fake.post("/v1/chat/completions", content=json.dumps(CHAT | {"messages": [message]})))["param"]
        == param
    )


@pytest.mark.parametrize(
    "prompt", [5, {}, [], [""], [[]], ["a", 5], [1, "a"], [-1], [260], [10**12], [[1], [True]], None, ""]
)
def test_prompts(fake: Live, prompt: Any) -> None:
    assert error_of(fake.post("/v1/completions", json=TEXT | {"prompt": prompt}))["param"].startswith("prompt")


def test_template_and_engine_refusals(fake: Live) -> None:
    messages = [{"role": "assistant", "content": "hi"}]
    assert "template" in error_of(fake.post("/v1/chat/completions", json=CHAT | {"messages": messages}))["message"]
    for stream in (False, True):
        error = error_of(fake.post("/v1/completions", json=TEXT | {"prompt": "REFUSE", "stream": stream}))
        assert error["message"] == "this prompt is refused"


def test_two_limits_that_differ(fake: Live) -> None:
    assert (
        error_of(fake.post("/v1/chat/completions", json=CHAT | {"max_completion_tokens": 5}))["param"] == "max_tokens"
    )


def test_too_long_says_the_figures(fake: Live) -> None:
    error = error_of(fake.post("/v1/completions", json=TEXT | {"prompt": "x" * 512}))
    assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")
    assert "512" in error["message"]
    assert "511" in error["message"]
    error = error_of(fake.post("/v1/completions", json=TEXT | {"prompt": "x" * 500, "max_tokens": 13}))
    assert error["param"] == "max_tokens"
    assert all(figure in error["message"] for figure in ("512", "500", "13", "513", "12 would fit"))
    assert fake.post("/v1/completions", json=TEXT | {"prompt": "x" * 511, "max_tokens": 1}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "x" * 20_000}),
        ("/v1/completions", {"prompt": ["hi", "x" * 20_000]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 5000} for _ in range(4)]}),
        ("/tokenize", {"prompt": "x" * 20_000}),
    ],
)
def test_what_cannot_fit_is_not_even_tokenized(
    fake: Live, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 tokens of at most four bytes, and four times that for normalization: 8192 characters."""
    encoded: list[int] = []

    def encode(_: FakeTarget, text: str, _special: bool) -> list[int]:
        encoded.append(len(text))
        return [1]

    monkeypatch.setattr(FakeTarget, "encode", encode)
    error = error_of(fake.post(path, json=body))
    assert "20000 characters" in error["message"]
    assert "8192" in error["message"]
    assert max(encoded, default=0) < 100


def test_wrong_model(fake: Live) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        fake.client().completions.create(model="gpt-9", prompt="hi")
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"
    assert fake.post("/v1/completions", json={"prompt": "hi"}).status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b"null",
        b'"x"',
        b"\xff\xfe\x00",
        b'{"prompt": NaN}',
        b'{"seed": ' + b"9" * 6000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
    ],
)
def test_bodies_that_are_no_json_object(fake: Live, raw: bytes) -> None:
    for path in ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"):
        assert error_of(fake.post(path, content=raw))["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("completions", rb'{"prompt": "x", "\ud800": 1}'),
        ("completions", rb'{"prompt": "x", "response_format": {"type": "text", "\udc00": 1}}'),
        ("completions", rb'{"prompt": "x", "guided_json": {"properties": {"\ud800": {}}}}'),
        ("completions", rb'{"prompt": "x", "guided_json": "{\"\\ud800\": 1}"}'),
        ("completions", rb'{"prompt": "x", "logit_bias": {"\ud800": 1}}'),
        ("completions", rb'{"prompt": "x", "stop": ["a", "\ud83d"]}'),
        ("chat/completions", rb'{"messages": [{"role": "user", "content": "x", "\ud800": 1}]}'),
        ("completions", b'{"prompt": "\xed\xa0\x80"}'),
    ],
)
def test_half_a_character_anywhere(fake: Live, path: str, raw: bytes) -> None:
    error = error_of(fake.post(f"/v1/{path}", content=raw))
    assert "surrogate" in error["message"] or "UTF-8" in error["message"]


def test_half_a_character_in_the_arguments_of_an_earlier_call(fake: Live) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\\ud800"}'}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    error = error_of(fake.post("/v1/chat/completions", json={"messages": messages}))
    assert error["param"].startswith("messages[1].tool_calls[0].function.arguments")


def test_whole_characters_as_escapes_are_fine(fake: Live) -> None:
    answer = fake.post("/v1/completions", content=rb'{"prompt": "x", "stop": "\ud83d\ude00", "max_tokens": 2}')
    assert answer.status_code == 200


def test_a_whole_number_may_be_written_with_a_point(fake: Live) -> None:
    answer = fake.post("/v1/completions", content=b'{"prompt": "x", "max_tokens": 4.0, "n": 2e0}')
    assert answer.json()["usage"]["completion_tokens"] == 8
    assert error_of(fake.post("/v1/completions", json=TEXT | {"max_tokens": 4.5}))["param"] == "max_tokens"


def test_usage_on_every_chunk_needs_usage(fake: Live) -> None:
    more = {"stream": True, "stream_options": {"continuous_usage_stats": True}}
    error = error_of(fake.post("/v1/completions", json=TEXT | more))
    assert error["param"] == "stream_options.continuous_usage_stats"


def test_paths_and_methods(fake: Live) -> None:
    error_of(fake.get("/nowhere"), 404)
    error_of(fake.get("/v1/completions"), 405)
    error_of(fake.post("/health"), 405)
    error_of(fake.post("/v1/embeddings", json={}), 404)


def test_what_is_not_http_gets_400_and_a_closed_connection(fake: Live) -> None:
    host, port = fake.url.removeprefix("http://").split(":")
    for raw in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"HELLO\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=10) as sock:
            sock.sendall(raw)
            answer = b""
            while part := sock.recv(4096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 400")


@pytest.fixture(scope="module")
def locked() -> Iterator[Live]:
    with live(
        FakeEngine(), FakeTarget(), api_keys=("first", "sécond"), max_body_bytes=1000, body_timeout_s=0.5
    ) as found:
        yield found


def test_keys(locked: Live) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic first"},
        {"Authorization": "first"},
    ):
        answer = locked.post("/v1/completions", json=TEXT, headers=headers)
        assert error_of(answer, 401)["code"] == "invalid_api_key"
        error_of(locked.get("/v1/models", headers=headers), 401)
        error_of(locked.post("/tokenize", json={}, headers=headers), 401)
    for key in (b"first", "sécond".encode()):
        assert locked.get("/v1/models", headers={b"Authorization": b"Bearer " + key}).status_code == 200
    assert locked.client(api_key="first").models.list().data[0].id == "fake"
    for path in ("/health", "/version", "/metrics"):
        assert locked.get(path).status_code == 200


def test_body_limits(locked: Live) -> None:
    headers = {"Authorization": "Bearer first"}
    big = json.dumps(TEXT | {"prompt": "x" * 2000}).encode()
    error = error_of(locked.post("/v1/completions", content=big, headers=headers), 413)
    assert "1000 bytes" in error["message"]

    def parts() -> Iterator[bytes]:
        yield from (big[:900], big[900:])

    error_of(locked.post("/v1/completions", content=parts(), headers=headers), 413)


def test_a_body_that_never_comes(locked: Live) -> None:
    host, port = locked.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        sock.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer first\r\nContent-Length: 9\r\n\r\n{"
        )
        assert sock.recv(4096).startswith(b"HTTP/1.1 408")
