"""Request options over the real engine, with the openai client: shapes, and the same answer with a draft."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from specctl.runtime import EngineOptions, Target, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.kit import build
from tests.server.live import Live, live

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
TEMPLATE = (
    "{% for t in tools or [] %}{{ t.function.name }}<tool_call>{% endfor %}"
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.arguments.city }}{% endfor %}{% endfor %}>"
)
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"$ref": "#/$defs/city"}},
            "required": ["city"],
            "additionalProperties": False,
            "$defs": {"city": {"enum": ["Oslo", "Łódź"]}},
        },
    },
}
CLOCK: dict[str, Any] = {"type": "function", "function": {"name": "clock"}}
ASK: list[Any] = [{"role": "user", "content": "weather in Oslo?"}]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    set_threads(1)
    folder = build("llama", tmp_path_factory.mktemp("target"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 256}))
    return load_target(str(folder), device="cpu", dtype="float64")


@pytest.fixture(scope="module", params=[None, NGRAM], ids=["plain", "ngram"])
def server(request: pytest.FixtureRequest, target: Target) -> Iterator[Live]:
    config = SpecDecodeConfig.from_dict(request.param) if request.param else None
    with live(make_engine(target, config, EngineOptions(4)), target, max_model_len=256) as found:
        yield found


def test_completion_logprobs(server: Live) -> None:
    how: dict[str, Any] = {"model": "fake", "prompt": "abcabc", "max_tokens": 8, "temperature": 0, "logprobs": 2}
    how |= {"extra_body": {"ignore_eos": True}}
    choice = server.client().completions.create(**how).choices[0]
    found = choice.logprobs
    assert found is not None
    assert found.tokens is not None
    assert found.token_logprobs is not None
    assert found.top_logprobs is not None
    assert found.text_offset is not None
    assert len(found.tokens) == len(found.token_logprobs) == len(found.top_logprobs) == 8
    assert all(value == max(top.values()) for value, top in zip(found.token_logprobs, found.top_logprobs, strict=True))
    assert found.text_offset[0] == 0
    chunks = [chunk.choices[0].logprobs for chunk in server.client().completions.create(**how, stream=True)]
    streamed = [chunk for chunk in chunks if chunk]
    assert [t for chunk in streamed for t in chunk.tokens or []] == found.tokens
    assert [o for chunk in streamed for o in chunk.text_offset or []] == found.text_offset
    values = [v for chunk in streamed for v in chunk.token_logprobs or []]
    assert values == pytest.approx(found.token_logprobs, abs=1e-8)


def test_chat_logprobs(server: Live) -> None:
    how: dict[str, Any] = {"model": "fake", "messages": ASK, "max_tokens": 6, "temperature": 0}
    how |= {"logprobs": True, "top_logprobs": 3, "extra_body": {"ignore_eos": True}}
    found = server.client().chat.completions.create(**how).choices[0].logprobs
    assert found is not None
    assert found.content is not None
    assert len(found.content) == 6
    for entry in found.content:
        assert len(entry.top_logprobs) == 3
        assert entry.top_logprobs[0].bytes == entry.bytes
        assert math.exp(entry.logprob) <= 1
    stream = server.client().chat.completions.create(**how, stream=True)
    parts = [chunk.choices[0].logprobs.content or [] for chunk in stream if chunk.choices[0].logprobs]
    assert [e.bytes for part in parts for e in part] == [e.bytes for e in found.content]


def test_echo_with_logprobs_scores_the_prompt(server: Live) -> None:
    how: dict[str, Any] = {"model": "fake", "prompt": "naïve abc", "temperature": 0, "echo": True, "logprobs": 1}
    scored = server.client().completions.create(**how, max_tokens=0)
    longer = server.client().completions.create(**how, max_tokens=3, extra_body={"ignore_eos": True})
    assert scored.choices[0].text == "naïve abc"
    assert scored.usage is not None
    assert scored.usage.completion_tokens == 0
    left, right = scored.choices[0].logprobs, longer.choices[0].logprobs
    assert left is not None
    assert right is not None
    assert left.token_logprobs is not None
    assert right.token_logprobs is not None
    assert len(left.token_logprobs) == 10
    assert left.token_logprobs[0] is None
    assert right.token_logprobs[1:10] == pytest.approx(left.token_logprobs[1:], abs=1e-8)
    assert len(right.token_logprobs) == 13
    assert left.text_offset == [0, 1, 2, 2, 3, 4, 5, 6, 7, 8]


def test_prompt_logprobs(server: Live) -> None:
    body = {"prompt": "abcab", "max_tokens": 1, "prompt_logprobs": 1, "temperature": 0}
    found = server.post("/v1/completions", json=body).json()["choices"][0]["prompt_logprobs"]
    assert found[0] is None
    assert [str(token) in entry for token, entry in zip(b"bcab", found[1:], strict=True)] == [True] * 4
    assert all(min(value["rank"] for value in entry.values()) == 1 for entry in found[1:])


def test_penalties_change_the_answer_and_a_bias_forces_it(server: Live) -> None:
    client = server.client()

    def ask(**how: Any) -> str:
        answer = client.completions.create(
            model="fake",
            prompt="ha ha ha ha",
            temperature=0,
            max_tokens=16,
            **{"extra_body": {"ignore_eos": True}, **how},
        )
        return answer.choices[0].text

    assert ask(frequency_penalty=2) != ask(frequency_penalty=-2)
    assert ask(logit_bias={"65": 100}) == "A" * 16
    banned = ask(logit_bias={"65": 100}, extra_body={"bad_words": ["AA"], "ignore_eos": True})
    assert "AA" not in banned
    assert "A" in banned


def test_json_schema_with_the_clients_own_parser(server: Live) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}}
    schema |= {"required": ["n"], "additionalProperties": False}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}
    answer = server.client().chat.completions.create(model="fake", messages=ASK, response_format=wanted, seed=1)
    assert 0 <= json.loads(answer.choices[0].message.content or "")["n"] <= 99
    regex = {"response_format": {"type": "regex", "regex": "[xy]{4}"}}
    text = server.client().completions.create(model="fake", prompt="a", extra_body=regex).choices[0].text
    assert set(text) <= {"x", "y"}
    assert len(text) == 4
    choice = {"structured_outputs": {"choice": ["left", "right"]}}
    assert server.client().completions.create(model="fake", prompt="a", extra_body=choice).choices[0].text in (
        "left",
        "right",
    )


@pytest.mark.parametrize(
    ("schema", "named"), [({"type": "array", "uniqueItems": True}, "uniqueItems"), ({"minLenght": 1}, "minLenght")]
)
def test_a_keyword_that_cannot_be_followed_is_named(server: Live, schema: dict[str, Any], named: str) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.BadRequestError, match=named) as caught:
        server.client().chat.completions.create(model="fake", messages=ASK, response_format=wanted)
    assert caught.value.param == "response_format.json_schema.schema"


def test_a_function_by_name(server: Live) -> None:
    how: dict[str, Any] = {"model": "fake", "messages": ASK, "tools": [WEATHER, CLOCK], "seed": 3}
    how |= {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
    choice = server.client().chat.completions.create(**how).choices[0]
    (call,) = choice.message.tool_calls or ()
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Oslo", "Łódź")
    assert choice.finish_reason == "stop"
    assert choice.message.content is None
    deltas = [chunk.choices[0].delta for chunk in server.client().chat.completions.create(**how, stream=True)]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert calls[0].function is not None
    assert calls[0].function.name == "weather"
    streamed = "".join((c.function.arguments or "") if c.function else "" for c in calls)
    assert streamed == call.function.arguments


def test_a_required_call(server: Live) -> None:
    async def both() -> tuple[Any, list[Any]]:
        how: dict[str, Any] = {"model": "fake", "messages": ASK, "tools": [WEATHER, CLOCK], "tool_choice": "required"}
        how |= {"parallel_tool_calls": False, "seed": 5, "temperature": 0.3}
        async with server.async_client() as client:
            whole = await client.chat.completions.create(**how)
            stream = await client.chat.completions.create(**how, stream=True)
            return whole.choices[0], [chunk.choices[0] async for chunk in stream]

    whole, chunks = asyncio.run(both())
    (call,) = whole.message.tool_calls
    assert call.function.name in ("weather", "clock")
    assert whole.finish_reason == chunks[-1].finish_reason == "tool_calls"
    (streamed,) = [call for chunk in chunks for call in chunk.delta.tool_calls or []]
    assert streamed.function.model_dump() == call.function.model_dump()
    history = [*ASK, whole.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    how = {"model": "fake", "messages": history, "tools": [WEATHER], "tool_choice": "none", "max_tokens": 3}
    assert server.client().chat.completions.create(**how).choices[0].message.tool_calls is None


def test_stop_strings_may_stay_and_special_tokens_may_show(server: Live) -> None:
    body = {"prompt": "a", "temperature": 0, "logit_bias": {"65": 100}, "stop": "AAA", "max_tokens": 9}
    assert server.post("/v1/completions", json=body).json()["choices"][0]["text"] == ""
    kept = server.post("/v1/completions", json=body | {"include_stop_str_in_output": True}).json()["choices"][0]
    assert (kept["text"], kept["stop_reason"]) == ("AAA", "AAA")
    pads = {"prompt": "a", "temperature": 0, "logit_bias": {"257": 100}, "max_tokens": 2}
    assert server.post("/v1/completions", json=pads).json()["choices"][0]["text"] == ""
    shown = pads | {"skip_special_tokens": False}
    assert server.post("/v1/completions", json=shown).json()["choices"][0]["text"] == "<pad><pad>"
    ended = shown | {"stop_token_ids": [257]}
    assert server.post("/v1/completions", json=ended).json()["choices"][0]["text"] == ""
    kept = server.post("/v1/completions", json=ended | {"include_stop_str_in_output": True}).json()
    assert kept["choices"][0]["text"] == "<pad>"


def test_the_prompts_end_alone(server: Live) -> None:
    body = {"prompt": "abcdef", "max_tokens": 1, "truncate_prompt_tokens": 2, "return_token_ids": True}
    assert server.post("/v1/completions", json=body).json()["choices"][0]["prompt_token_ids"] == list(b"ef")


def test_token_strings(server: Live) -> None:
    found = server.post("/tokenize", json={"prompt": "aé", "return_token_strs": True}).json()
    assert found["token_strs"] == ["a", "\ufffd", "\ufffd"]


@pytest.mark.parametrize("temperature", [0, 1])
def test_bans_that_leave_nothing_are_the_requests_fault(server: Live, temperature: float) -> None:
    body = {
        "prompt": "abc",
        "temperature": temperature,
        "max_tokens": 9,
        "allowed_token_ids": [65],
        "bad_words": ["AAA"],
    }
    answer = server.post("/v1/completions", json=body)
    assert answer.status_code == 400
    assert "leave no token" in answer.json()["error"]["message"]
    grammar = {"allowed_token_ids": [65], "response_format": {"type": "json_object"}}
    assert server.post("/v1/completions", json={"prompt": "a", **grammar}).status_code == 400
    assert server.bridge.inside == 0


def test_a_grammar_that_grows_too_large_is_told_without_its_text(
    server: Live, caplog: pytest.LogCaptureFixture
) -> None:
    keys = [{f"secret{i}_{j}": {"type": "string"} for j in range(20)} for i in range(50)]
    schema = {"anyOf": [{"type": "object", "properties": each} for each in keys]}
    answer = server.post("/v1/completions", json={"prompt": "abc", "guided_json": schema})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "max is 2000" in message
    assert "secret" not in message
    assert "secret" not in caplog.text
    assert "ends: SpecctlError" in caplog.text
