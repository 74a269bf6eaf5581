"""The server over the bundled engine, with tiny random checkpoints in float64, where equality has no exception."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specctl.runtime import EngineOptions, SpecStats, Target, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.kit import build
from tests.server.live import Live, live

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}>"
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
PROMPTS = ["abcabcabcabc", "hello", "x", "one two one two one", "na\u00efve", "0101010101", "q" * 20, "the end"]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    set_threads(1)  # kernels this small only lose time by sharing their work
    folder = build("llama", tmp_path_factory.mktemp("target"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return load_target(str(folder), device="cpu", dtype="float64")


def draft_of(target: Target) -> dict[str, Any]:
    """The target as its own draft: all drafts fit, so every block is full."""
    return {"method": "draft_model", "model": str(target.folder), "num_speculative_tokens": 3}


def serving(target: Target, spec: dict[str, Any] | None, **changes: Any) -> Any:
    """A live server over `target`."""
    config = SpecDecodeConfig.from_dict(spec) if spec else None
    engine = make_engine(target, config, EngineOptions(max_num_seqs=4, max_num_batched_tokens=16))
    return live(engine, target, max_model_len=target.max_model_len, **changes)


@pytest.fixture(scope="module", params=["none", "ngram", "draft_model"])
def server(request: pytest.FixtureRequest, target: Target) -> Iterator[Live]:
    spec = {"none": None, "ngram": NGRAM, "draft_model": draft_of(target)}[request.param]
    with serving(target, spec, per_request_metrics="summary") as found:
        yield found


def ask_all(server: Live, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All bodies at once."""

    async def run() -> list[dict[str, Any]]:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            answers = await asyncio.gather(*(client.post("/v1/completions", json=body) for body in bodies))
        assert [a.status_code for a in answers] == [200] * len(answers), [a.text for a in answers]
        return [answer.json() for answer in answers]

    return asyncio.run(run())


def mixed_bodies() -> list[dict[str, Any]]:
    """Greedy bodies with all kinds of ends."""
    ends: list[dict[str, Any]] = [{"max_tokens": n} for n in (1, 2, 3, 5, 9, 40)]
    ends += [{"max_tokens": 40, "ignore_eos": True}, {"max_tokens": 40, "stop_token_ids": list(range(0, 258, 7))}]
    return [{"prompt": prompt, "temperature": 0, "return_token_ids": True} | end for prompt in PROMPTS for end in ends]


@pytest.fixture(scope="module")
def plain(target: Target) -> list[tuple[Any, ...]]:
    """What the same bodies answer without speculation, one at a time."""
    with serving(target, None) as server:
        return [outcome(ask_all(server, [body])[0]) for body in mixed_bodies()]


def outcome(answer: dict[str, Any]) -> tuple[Any, ...]:
    choice = answer["choices"][0]
    return choice["text"], choice["token_ids"], choice["finish_reason"], choice["stop_reason"], answer["usage"]


def test_greedy_answers_are_those_of_plain_decoding(server: Live, plain: list[tuple[Any, ...]]) -> None:
    assert [outcome(answer) for answer in ask_all(server, mixed_bodies())] == plain


def test_streams_equal_whole_answers(server: Live) -> None:
    client = server.client()
    for prompt in PROMPTS:
        whole = client.completions.create(model="fake", prompt=prompt, temperature=0, max_tokens=30)
        stream = client.completions.create(model="fake", prompt=prompt, temperature=0, max_tokens=30, stream=True)
        assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_stop_strings_cut_where_plain_text_has_them(server: Live) -> None:
    body = {"prompt": PROMPTS[0], "temperature": 0, "max_tokens": 40, "ignore_eos": True}
    text = ask_all(server, [body])[0]["choices"][0]["text"]
    for start in range(3, len(text) - 3):
        stop = text[start : start + 3]
        if "\ufffd" in stop:
            continue
        choice = ask_all(server, [body | {"stop": [stop]}])[0]["choices"][0]
        assert (choice["text"], choice["stop_reason"]) == (text[: text.index(stop)], stop)


def test_a_seeded_answer_does_not_depend_on_its_company(server: Live) -> None:
    bodies = [{"prompt": prompt, "seed": 11, "n": 2, "max_tokens": 20} for prompt in PROMPTS]
    alone = [[c["text"] for c in ask_all(server, [body])[0]["choices"]] for body in bodies]
    together = [[c["text"] for c in answer["choices"]] for answer in ask_all(server, bodies)]
    assert together == alone
    assert alone[0][0] != alone[0][1]


def test_counters_equal_the_engines_and_the_answers(target: Target) -> None:
    with serving(target, draft_of(target), per_request_metrics="summary") as server:
        answers = ask_all(server, [body for body in mixed_bodies() if body["max_tokens"] > 1])
        counters, stats = server.counters(), server.engine.stats
    each = [answer["metrics"]["speculative_decoding"] for answer in answers]
    pairs = {"num_drafts": "num_spec_steps", "num_draft_tokens": "num_draft_tokens"}
    pairs["num_accepted_tokens"] = "num_accepted_draft_tokens"
    for ours, theirs in pairs.items():
        total = getattr(stats, ours)
        assert total == counters[f"vllm:spec_decode_{ours}_total"] == sum(m[theirs] for m in each) > 0
    assert isinstance(stats, SpecStats)
    for position, count in enumerate(stats.accepted_per_position):
        assert counters[f"vllm:spec_decode_num_accepted_tokens_per_pos_total[position={position}]"] == count
    assert counters["vllm:generation_tokens_total"] == sum(a["usage"]["completion_tokens"] for a in answers)


def test_chat_and_its_template(server: Live) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    answer = server.client().chat.completions.create(model="fake", messages=messages, temperature=0, max_tokens=5)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len("[user]hi>")


def test_the_context_is_the_limit(server: Live) -> None:
    limit = server.get("/v1/models").json()["data"][0]["max_model_len"]
    full = ask_all(server, [{"prompt": "y" * (limit - 1), "temperature": 0, "ignore_eos": True, "max_tokens": 1}])[0]
    counts = {"prompt_tokens": limit - 1, "completion_tokens": 1, "total_tokens": limit}
    assert full["usage"] == counts | {"prompt_tokens_details": {"cached_tokens": 0}}
    near = ask_all(server, [{"prompt": "y" * (limit - 7), "temperature": 0, "ignore_eos": True, "max_tokens": 7}])[0]
    assert near["choices"][0]["finish_reason"] == "length"
    assert near["usage"]["total_tokens"] == limit
    assert server.post("/v1/completions", json={"prompt": "y" * limit}).status_code == 400


def test_hanging_up_frees_the_slot(server: Live) -> None:
    body = {"prompt": "hello", "max_tokens": 80, "ignore_eos": True, "stream": True, "n": 4}
    for _ in range(5):
        with (
            httpx.Client(timeout=10) as client,
            client.stream("POST", server.url + "/v1/completions", json=body) as answer,
        ):
            next(answer.iter_lines())
    _until(lambda: server.bridge.inside == 0)
    assert (server.engine.num_running, server.engine.num_waiting, server.engine.kv_usage) == (0, 0, 0)
    assert server.get("/health").status_code == 200


def test_a_proposer_that_throws_costs_the_drafts_of_one_answer(
    target: Target, plain: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(target, NGRAM, per_request_metrics="summary") as server:
        proposer, calls = server.engine.proposer, []

        def propose(sequences: Any, limits: Any) -> Any:
            calls.append(sequences[0].request.id)
            if calls.count(calls[0]) > 2 and calls[-1] == calls[0]:  # the first answer, from its third draft on
                raise RuntimeError("thrown in the proposer")
            return sound(sequences, limits)

        sound = proposer.propose
        monkeypatch.setattr(proposer, "propose", propose)
        body = next(body for body in mixed_bodies() if body.get("ignore_eos"))
        answers = [ask_all(server, [body])[0] for _ in range(2)]
        counters = server.counters()
    assert [outcome(answer) for answer in answers] == [outcome(answers[0])] * 2
    assert outcome(answers[0]) in plain
    steps = [answer["metrics"]["speculative_decoding"]["num_spec_steps"] for answer in answers]
    assert steps[0] < steps[1]
    assert counters["specctl:proposer_failures_total"] == 1
    assert "thrown in the proposer" in caplog.text


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_model_without_a_chat_template(tmp_path: Path) -> None:
    target = load_target(str(build("llama", tmp_path)), device="cpu", dtype="float32")
    with serving(target, None) as server:
        answer = server.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "no_chat_template"
