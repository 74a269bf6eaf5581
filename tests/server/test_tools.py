"""Calls that the model chooses to make: what its text may be, and how it is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llguidance
import pytest

from specctl.runtime import Target, load_target
from specctl.runtime.grammar import GrammarCompiler
from specctl.server.api_error import ApiError
from specctl.server.protocol import read_chat
from specctl.server.tools import TagReader
from tests.runtime.kit import build

CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def tagged(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


OSLO, CLOCK = tagged("weather", '{"city": "Oslo"}'), tagged("clock", '{"zone": 1}')
# text, whether it may come with a strict function, and whether with one call at most
TEXTS = [
    ("hello", True, True),
    ("a < b <tool", True, True),
    (OSLO, True, True),
    (f"Sure. {CLOCK}", True, True),
    (tagged("weather", '{"city": "Rome"}'), False, False),
    (tagged("nowhere", "{}"), False, False),
    ("<tool_call>", False, False),
    (f"{OSLO}\n{CLOCK}", True, False),
    (f"{OSLO} and more", True, False),
    (f"{OSLO}\n<tool_call>", False, False),
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder: Path = build("llama", tmp_path_factory.mktemp("target"))
    return load_target(str(folder), device="cpu", dtype="float32")


def allowed(target: Target, grammar: str, text: str) -> bool:
    """Whether an answer may be this text and end there."""
    eos = sorted(target.eos_token_ids)
    compiler = GrammarCompiler(target.tokenizer, target.vocab_size, eos)
    assert compiler.check(grammar) is None
    tokens = [*target.encode(text, False), eos[0]]
    return bool(llguidance.LLMatcher(compiler.vocabulary, grammar).validate_tokens(tokens) == len(tokens))


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_of_a_models_choice_keep_to_strict_schemas(target: Target, parallel: bool) -> None:
    tools = [tool("weather", parameters=CITY, strict=True), tool("clock", parameters=CITY)]
    call = read_chat(BODY | {"tools": tools, "parallel_tool_calls": parallel})
    assert call.format is not None
    grammar = call.format.make()
    for text, with_many, with_one in TEXTS:
        assert allowed(target, grammar, text) is (with_many if parallel else with_one), text


def test_without_either_the_text_is_free() -> None:
    assert read_chat(BODY | {"tools": [tool("weather", parameters=CITY)]}).format is None
    assert read_chat(BODY | {"tools": [tool("weather", strict=True)], "tool_choice": "none"}).format is None
    assert read_chat(BODY | {"tools": [tool("weather")], "parallel_tool_calls": False}).format is not None


def test_a_forced_call_can_only_end() -> None:
    with pytest.raises(ApiError, match="ignore_eos"):
        read_chat(BODY | {"tools": [tool("weather")], "tool_choice": "required", "ignore_eos": True})


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_calls_are_read_back_however_the_text_arrives(size: int) -> None:
    text = f"Sure. {OSLO}\n{CLOCK}<tool_call>no call</tool_call> a <b <tool_call>open"
    reader = TagReader()
    deltas = [delta for i in range(0, len(text), size) for delta in reader.push(text[i : i + size])] + reader.end()
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [(call["index"], call["function"]["name"]) for call in calls] == [(0, "weather"), (1, "clock")]
    assert [call["function"]["arguments"] for call in calls] == ['{"city": "Oslo"}', '{"zone": 1}']
    content = "".join(delta.get("content", "") for delta in deltas)
    assert content == "Sure. <tool_call>no call</tool_call> a <b <tool_call>open"
    assert (reader.finish_reason("stop"), reader.finish_reason("length")) == ("tool_calls", "length")
