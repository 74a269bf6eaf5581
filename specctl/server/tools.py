"""Tools: what a body says about them, the grammar of a forced call, and text read back into calls.

A forced call (`required`, or one function by name) needs nothing of the model: the grammar leaves it no other answer.
`auto` leaves the choice to the model, so its own way of writing calls must be known: Hermes' and Qwen's tags. Between
them a grammar holds where a function is `strict`, or where there may be one call at most.
"""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specctl.runtime import grammar
from specctl.server.api_error import ApiError, bad_request
from specctl.server.fields import boolean, mapping, text, unsupported, wrong_type
from specctl.server.formats import ANY_OBJECT, AnswerFormat, of_schema
from specctl.server.schemas import check_schema

MAX_TOOLS = 128
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_BEGIN, _END = "<tool_call>", "</tool_call>"

Delta = dict[str, Any]


@dataclass(frozen=True)
class ToolUse:
    """`tools`: as the chat template wants them; `choice`: `none`, `auto`, `required`, or the name of a function."""

    tools: tuple[dict[str, Any], ...]
    choice: str
    named: bool = False
    parallel: bool = True

    @property
    def format(self) -> AnswerFormat | None:
        """What the answer keeps to; None where the model may answer as it likes."""
        if self.named:
            return of_schema("tools", self._parameters()[self.choice])
        if self.choice == "required":
            return AnswerFormat("tools", lambda: grammar.of_calls(_as_json(self._parameters()), self.parallel))
        strict = self._strict()
        if self.choice == "none" or (self.parallel and not strict):
            return None
        # What strict functions are given keeps to their schemas; what the others are given is an object.
        known = {name: schema if name in strict else ANY_OBJECT for name, schema in self._parameters().items()}
        tags = (_BEGIN, _END)
        return AnswerFormat("tools", lambda: grammar.of_tagged_calls(_as_json(known), self.parallel, tags))

    def _strict(self) -> set[str]:
        functions = (tool["function"] for tool in self.tools)
        return {function["name"] for function in functions if function.get("strict")}

    def _parameters(self) -> dict[str, Any]:
        functions = (tool["function"] for tool in self.tools)
        return {function["name"]: function.get("parameters") or NO_ARGUMENTS for function in functions}

    def reader(self) -> CallReader | None:
        """What makes calls of the answer's text; None where the text is the answer."""
        if self.named:
            return NamedReader(self.choice)
        return {"required": ListReader, "auto": TagReader}.get(self.choice, _no_reader)()


def _no_reader() -> None:
    return None


def read_tools(found: Mapping[str, Any]) -> ToolUse | None:
    """The tools of a body, None where it has none. Raises ApiError (400)."""
    given, choice = found["tools"], found["tool_choice"]
    tools = _tools(given) if given is not None else ()
    if not tools:
        if choice not in (None, "none", "auto"):
            raise bad_request("'tool_choice' asks for a call, but 'tools' has none", "tool_choice", "invalid_value")
        return None
    names = [tool["function"]["name"] for tool in tools]
    parallel = found["parallel_tool_calls"]
    if choice is None or isinstance(choice, str):
        kind = choice or "auto"
        if kind not in ("none", "auto", "required"):
            wanted = "none, auto, required or a function"
            raise bad_request(f"'tool_choice' must be {wanted}", "tool_choice", "invalid_value")
        return ToolUse(tools, kind, parallel=parallel)
    return ToolUse(tools, _chosen(choice, names), named=True, parallel=parallel)


def _chosen(choice: Any, names: list[str]) -> str:
    given = mapping("tool_choice", choice)
    if given.get("type") != "function":
        raise unsupported("tool_choice.type", "function is")
    name = text("tool_choice.function.name", mapping("tool_choice.function", given.get("function")).get("name"))
    if name not in names:
        raise bad_request(f"'tool_choice' names '{name[:64]}', which 'tools' does not have", "tool_choice")
    return name


def _tools(value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list):
        raise wrong_type("tools", "an array of tools", value)
    if len(value) > MAX_TOOLS:
        raise bad_request(f"'tools' has {len(value)} tools; at most {MAX_TOOLS} are allowed", "tools", "invalid_value")
    tools = tuple(_tool(f"tools[{index}]", item) for index, item in enumerate(value))
    names = [tool["function"]["name"] for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise bad_request(f"'tools' has the function '{twice[:64]}' twice", "tools", "invalid_value")
    return tools


def _tool(name: str, value: Any) -> dict[str, Any]:
    tool = mapping(name, value)
    if tool.get("type") != "function":
        raise unsupported(f"{name}.type", "function is")
    for key in tool.keys() - {"type", "function"}:
        raise unsupported(f"{name}.{key[:64]}")
    function = mapping(f"{name}.function", tool.get("function"))
    for key in function.keys() - {"name", "description", "parameters", "strict"}:
        raise unsupported(f"{name}.function.{key[:64]}")
    text(f"{name}.function.name", function.get("name"))
    if function.get("description") is not None:
        text(f"{name}.function.description", function["description"])
    if function.get("strict") is not None:
        boolean(f"{name}.function.strict", function["strict"])
    if function.get("parameters") is not None:
        check_schema(f"{name}.function.parameters", mapping(f"{name}.function.parameters", function["parameters"]))
    return tool


def _as_json(parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Functions' names as JSON text; each schema keeps its own root, so its references hold."""
    return [(json.dumps(name), schema) for name, schema in parameters.items()]


class CallReader(ABC):
    """Text in, deltas of a message out: pieces of content, and calls with their place in the message."""

    def __init__(self) -> None:
        self.count = 0

    @abstractmethod
    def push(self, text: str) -> list[Delta]:
        """What new text adds to the message."""

    def end(self) -> list[Delta]:
        """What was held back until now."""
        return []

    def finish_reason(self, reason: str) -> str:
        """`tool_calls` where the model chose to call; a call that was forced ends with `stop`, as OpenAI's does."""
        return "tool_calls" if self.count and reason == "stop" else reason

    def call(self, name: str, arguments: str) -> Delta:
        """The next call, with as much of its arguments as there is."""
        self.count += 1
        call = {"index": self.count - 1, "id": f"call_{uuid.uuid4().hex[:24]}", "type": "function"}
        return {"tool_calls": [call | {"function": {"name": name, "arguments": arguments}}]}


class NamedReader(CallReader):
    """The text is the arguments of one function."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def push(self, text: str) -> list[Delta]:
        """The arguments as they come."""
        if not self.count:
            return [self.call(self._name, text)]
        return [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]}] if text else []

    def finish_reason(self, reason: str) -> str:
        """As OpenAI has it."""
        return reason


class ListReader(CallReader):
    """The text is an array of calls; each is passed on when it is whole."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def push(self, text: str) -> list[Delta]:
        """The calls that ``text`` completes."""
        self._text += text
        found: list[Delta] = []
        while "}" in text:
            self._text = self._text.lstrip("[, \n\t")
            try:
                call, end = json.JSONDecoder().raw_decode(self._text)
            except ValueError:
                break
            self._text = self._text[end:]
            found.append(self.call(call["name"], json.dumps(call["parameters"], ensure_ascii=False)))
        return found


class TagReader(CallReader):
    """Text with `<tool_call>{"name", "arguments"}</tool_call>` in it. What is in tags and is no call stays text; the
    line breaks behind a call belong to it, whenever they arrive.
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._behind_call = False

    def push(self, text: str) -> list[Delta]:
        """Content before a tag, and the calls whose tags are closed."""
        self._text += text
        found: list[Delta] = []
        while True:
            if self._behind_call:
                self._text = self._text.lstrip("\n")
                self._behind_call = not self._text
            begin = self._text.find(_BEGIN)
            if begin < 0:
                return found + self._content(len(self._text) - _tag_begun(self._text))
            end = self._text.find(_END, begin)
            if end < 0:
                return found + self._content(begin)
            found += self._content(begin)
            inside = self._text[len(_BEGIN) : end - begin]
            call = _call_of(inside)
            found.append(self.call(*call) if call else {"content": f"{_BEGIN}{inside}{_END}"})
            self._text = self._text[end - begin + len(_END) :]
            self._behind_call = call is not None

    def _content(self, count: int) -> list[Delta]:
        content, self._text = self._text[:count], self._text[count:]
        return [{"content": content}] if content else []

    def end(self) -> list[Delta]:
        """A tag that was never closed is text."""
        return self._content(len(self._text))


def _tag_begun(text: str) -> int:
    """How many characters at the end of ``text`` could become a tag."""
    return next((size for size in range(len(_BEGIN) - 1, 0, -1) if text.endswith(_BEGIN[:size])), 0)


def _call_of(inside: str) -> tuple[str, str] | None:
    try:
        call = json.loads(inside)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return call["name"], whole


def no_parser(model: str) -> ApiError:
    """A 400 for `auto` where the chat template does not write calls in a way that is known here."""
    message = (
        "'tool_choice' auto (the default) needs a chat template that writes calls in <tool_call> tags; that of "
        f"{model} does not. Use 'required' or name a function: then the answer is a call whatever the template says"
    )
    return bad_request(message, "tool_choice", "unsupported_parameter")
