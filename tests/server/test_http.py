"""The API as the openai client sees it."""

from __future__ import annotations

import asyncio
import json

import httpx
import openai
import pytest

from tests.server.fake_engine import answer_text
from tests.server.live import Live

PROMPT = "tell me"
CHAT = [{"role": "user", "content": PROMPT}]
RENDERED = f"<user>{PROMPT}<assistant>"
GREEDY = answer_text(RENDERED, None)


def test_chat_in_one_piece(fake: Live) -> None:
    answer = fake.client().chat.completions.create(model="fake", messages=CHAT, temperature=0)
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == "fake"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == GREEDY
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    tokens = len(GREEDY.encode()) + 1  # the end-of-text token counts
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (len(RENDERED), tokens)
    assert answer.usage.total_tokens == len(RENDERED) + tokens


def test_chat_stream_equals_the_whole(fake: Live) -> None:
    stream = fake.client().chat.completions.create(
        model="fake", messages=CHAT, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == GREEDY
    reasons = [c.choices[0].finish_reason for c in chunks if c.choices]
    assert reasons[-1] == "stop"
    assert set(reasons[:-1]) == {None}
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(GREEDY.encode()) + 1
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_stream_on_the_wire(fake: Live) -> None:
    body = {"model": "fake", "messages": CHAT, "temperature": 0, "stream": True}
    answer = fake.post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = answer.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: ") for event in events[:-1])
    assert "usage" not in json.loads(events[0][6:])


def test_completion_in_one_piece_and_streamed(fake: Live) -> None:
    client = fake.client()
    whole = client.completions.create(model="fake", prompt=PROMPT, temperature=0, max_tokens=100)
    assert whole.object == "text_completion"
    assert whole.choices[0].text == answer_text(PROMPT, None)
    stream = client.completions.create(model="fake", prompt=PROMPT, temperature=0, max_tokens=100, stream=True)
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_completion_defaults_to_sixteen_tokens(fake: Live) -> None:
    answer = fake.client().completions.create(model="fake", prompt=PROMPT, temperature=0)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16


@pytest.mark.parametrize("limit", range(1, 9))
def test_max_tokens_is_exact(fake: Live, limit: int) -> None:
    answer = fake.client().chat.completions.create(
        model="fake", messages=CHAT, temperature=0, max_completion_tokens=limit
    )
    assert answer.usage is not None
    assert answer.usage.completion_tokens == limit
    assert answer.choices[0].finish_reason == "length"


@pytest.mark.parametrize("stop", ["naïv", ["never there", " bytes, naïv"]])
def test_stop_strings(fake: Live, stop: str | list[str]) -> None:
    client = fake.client()
    hit = stop if isinstance(stop, str) else stop[1]
    whole = client.chat.completions.create(model="fake", messages=CHAT, temperature=0, stop=stop)
    assert whole.choices[0].message.content == GREEDY[: GREEDY.index(hit)]
    assert whole.choices[0].finish_reason == "stop"
    assert whole.choices[0].model_extra == {"stop_reason": hit}
    stream = client.chat.completions.create(model="fake", messages=CHAT, temperature=0, stop=stop, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream) == GREEDY[: GREEDY.index(hit)]


def test_stop_token_ids_and_ignore_eos(fake: Live) -> None:
    client = fake.client()
    comma = client.chat.completions.create(
        model="fake", messages=CHAT, temperature=0, extra_body={"stop_token_ids": [ord(",")]}
    )
    assert comma.choices[0].message.content == GREEDY[: GREEDY.index(",")]
    assert comma.choices[0].model_extra == {"stop_reason": ord(",")}
    long = client.chat.completions.create(
        model="fake", messages=CHAT, temperature=0, max_tokens=150, extra_body={"ignore_eos": True}
    )
    assert long.usage is not None
    assert long.usage.completion_tokens == 150


def test_n_choices_have_seeds_of_their_own(fake: Live) -> None:
    def ask(seed: int, n: int) -> list[str]:
        answer = fake.client().completions.create(model="fake", prompt=PROMPT, seed=seed, n=n, max_tokens=90)
        return [choice.text for choice in answer.choices]

    three = ask(7, 3)
    assert len(set(three)) == 3
    assert three == ask(7, 3)
    assert three[0] == ask(7, 1)[0] == answer_text(PROMPT, 7)
    assert set(three[1:]).isdisjoint(ask(8, 3))


def test_n_streamed(fake: Live) -> None:
    stream = fake.client().chat.completions.create(model="fake", messages=CHAT, seed=7, n=3, stream=True)
    texts = {0: "", 1: "", 2: ""}
    ends = 0
    for chunk in stream:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        ends += chunk.choices[0].finish_reason is not None
    assert ends == 3
    assert texts[0] == answer_text(RENDERED, 7)
    assert len(set(texts.values())) == 3


def test_without_a_seed_answers_differ(fake: Live) -> None:
    client = fake.client()
    texts = {client.completions.create(model="fake", prompt=PROMPT, max_tokens=90).choices[0].text for _ in range(3)}
    assert len(texts) == 3


def test_batches_and_token_ids(fake: Live) -> None:
    client = fake.client()
    batch = client.completions.create(model="fake", prompt=["one", "three"], temperature=0, max_tokens=90, n=2)
    assert [choice.index for choice in batch.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in batch.choices] == [answer_text(p, None) for p in ("one", "one", "three", "three")]
    assert batch.usage is not None
    assert batch.usage.prompt_tokens == 8
    ids = client.completions.create(model="fake", prompt=list(b"one"), temperature=0, max_tokens=90)
    both = client.completions.create(model="fake", prompt=[list(b"one"), list(b"x")], temperature=0, max_tokens=90)
    assert ids.choices[0].text == both.choices[0].text == answer_text("one", None)


def test_return_token_ids(fake: Live) -> None:
    body = {"model": "fake", "prompt": PROMPT, "temperature": 0, "max_tokens": 90, "return_token_ids": True}
    expected = [*answer_text(PROMPT, None).encode(), 256]
    choice = fake.post("/v1/completions", json=body).json()["choices"][0]
    assert choice["token_ids"] == expected
    assert choice["prompt_token_ids"] == list(PROMPT.encode())
    events = _events(fake.post("/v1/completions", json=body | {"stream": True}))
    assert [i for e in events for i in e["choices"][0]["token_ids"]] == expected
    assert events[0]["choices"][0]["prompt_token_ids"] == list(PROMPT.encode())
    chat = {"model": "fake", "messages": CHAT, "temperature": 0, "return_token_ids": True}
    whole = fake.post("/v1/chat/completions", json=chat).json()
    assert whole["prompt_token_ids"] == list(RENDERED.encode())
    assert whole["choices"][0]["token_ids"] == [*GREEDY.encode(), 256]
    events = _events(fake.post("/v1/chat/completions", json=chat | {"stream": True}))
    assert [i for e in events for i in e["choices"][0].get("token_ids", [])] == [*GREEDY.encode(), 256]


def _events(answer: httpx.Response) -> list[dict]:  # type: ignore[type-arg]
    lines = [line[6:] for line in answer.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_echo(fake: Live) -> None:
    body = {"model": "fake", "prompt": ["one", "two"], "temperature": 0, "max_tokens": 90, "echo": True}
    whole = [c["text"] for c in fake.post("/v1/completions", json=body).json()["choices"]]
    assert whole == [prompt + answer_text(prompt, None) for prompt in ("one", "two")]
    texts = {0: "", 1: ""}
    for event in _events(fake.post("/v1/completions", json=body | {"stream": True, "return_token_ids": True})):
        texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
    assert [texts[0], texts[1]] == whole
    ids = fake.post("/v1/completions", json=body | {"prompt": list(b"one")}).json()
    assert ids["choices"][0]["text"] == whole[0]


def test_usage_on_every_chunk(fake: Live) -> None:
    body = {"model": "fake", "messages": CHAT, "temperature": 0, "stream": True}
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = _events(fake.post("/v1/chat/completions", json=body | {"stream_options": options}))
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == len(GREEDY.encode()) + 1


def test_text_parts_and_an_answer_sent_back(fake: Live) -> None:
    client = fake.client()
    first = client.chat.completions.create(model="fake", messages=CHAT, temperature=0)
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "tell"}, {"type": "text", "text": "me"}]},
        first.choices[0].message.model_dump(),
        {"role": "user", "content": "more"},
    ]
    answer = client.chat.completions.create(model="fake", messages=messages, temperature=0)  # type: ignore[arg-type]
    rendered = f"<system>be brief<user>tell\nme<assistant>{GREEDY}<user>more<assistant>"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(rendered.encode())


def test_many_at_once(fake: Live) -> None:
    async def ask(client: openai.AsyncOpenAI, number: int) -> bool:
        prompt = "x" * number
        if number % 2:
            whole = await client.completions.create(model="fake", prompt=prompt, temperature=0, max_tokens=90)
            return whole.choices[0].text == answer_text(prompt, None)
        stream = await client.completions.create(model="fake", prompt=prompt, temperature=0, max_tokens=90, stream=True)
        return "".join([chunk.choices[0].text async for chunk in stream]) == answer_text(prompt, None)

    async def everything() -> list[bool]:
        async with fake.async_client() as client:
            return await asyncio.gather(*(ask(client, number) for number in range(1, 41)))

    assert all(asyncio.run(everything()))
    assert fake.engine.most_running == 4


def test_models_version_tokenizer_health(fake: Live) -> None:
    client = fake.client()
    assert [model.id for model in client.models.list()] == ["fake"]
    assert client.models.retrieve("fake").model_extra is not None
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")
    assert set(fake.get("/version").json()) == {"version"}
    assert fake.get("/health").json() == {"status": "ok"}
    counted = fake.post("/tokenize", json={"model": "fake", "prompt": "añb"}).json()
    assert counted == {"count": 4, "max_model_len": 512, "tokens": list("añb".encode()), "token_strs": None}
    assert fake.post("/detokenize", json={"tokens": [97, 256]}).json() == {"prompt": "a</s>"}
    chat = fake.post("/tokenize", json={"messages": CHAT}).json()
    assert chat["tokens"] == list(RENDERED.encode())


def test_request_ids(fake: Live) -> None:
    assert fake.get("/version", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = fake.get("/version", headers={"X-Request-Id": "not an id"}).headers["x-request-id"]
    assert made.startswith("req-")
    assert "access-control-allow-origin" not in fake.get("/version", headers={"Origin": "http://evil"}).headers
