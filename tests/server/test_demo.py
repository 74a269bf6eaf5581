"""The bundled demo model behind the API, with the openai client: the same text with and without drafts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from specctl.runtime import EngineOptions, Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from tests.server.live import Live, live

MESSAGES: list[list[Any]] = [
    [{"role": "user", "content": "Tell me about the harbour."}],
    [{"role": "user", "content": "What is 17 plus 25?"}],
    [
        {
            "role": "user",
            "content": "Rename total to amount.\n\ndef add(total, price):\n    total += price\n    return total",
        }
    ],
]
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4}
DRAFT = {"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}


@pytest.fixture(scope="module")
def target() -> Target:
    return load_target("demo", device="cpu", dtype="float64")


@pytest.fixture(scope="module", params=[None, NGRAM, DRAFT], ids=["plain", "ngram", "draft_model"])
def server(request: pytest.FixtureRequest, target: Target) -> Iterator[Live]:
    spec = request.param
    engine = make_engine(target, spec and SpecDecodeConfig.from_dict(spec), EngineOptions(max_num_seqs=4))
    with live(engine, target, model_names=("demo",), max_model_len=target.max_model_len) as found:
        yield found


def answers(server: Live) -> list[str]:
    """Greedy answers, streamed."""
    texts = []
    for messages in MESSAGES:
        stream = server.client().chat.completions.create(
            model="demo", messages=messages, temperature=0, max_tokens=48, stream=True
        )
        texts.append("".join(chunk.choices[0].delta.content or "" for chunk in stream))
    return texts


@pytest.fixture(scope="module")
def plain(target: Target) -> list[str]:
    with live(make_engine(target, None, EngineOptions()), target, model_names=("demo",), max_model_len=512) as found:
        return answers(found)


def test_greedy_text_is_that_of_plain_decoding(server: Live, plain: list[str]) -> None:
    assert answers(server) == plain
    assert all(plain)
    assert server.bridge.inside == 0
