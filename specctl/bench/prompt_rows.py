"""One row of a prompts file as a prompt, in the shapes that the field's files have.

Shapes: `prompt` (plain), `messages` (OpenAI; SPEED-Bench's prepared files), `turns` (questions of Spec-Bench and
MT-bench), `conversations` (ShareGPT), each with an optional `category`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

UNNAMED_CATEGORY = "all"
SHAPES = (
    '{"prompt": "…"}, {"messages": [{"role", "content"}]}, {"turns": ["…"], "category": "…"}, '
    'or {"conversations": [{"from": "human", "value": "…"}]}'
)
# ShareGPT's files name the model that answered.
_ANSWERS = ("gpt", "assistant", "chatgpt", "bing", "bard")
SHAREGPT_ROLES = {"human": "user", "user": "user", "system": "system"} | dict.fromkeys(_ANSWERS, "assistant")
# SPEED-Bench's public rows hold this in place of text that its licence does not let them carry.
PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED"


class NoQuestion(ValueError):
    """A recorded conversation in which nobody asks anything, as ShareGPT's files have some."""


@dataclass(frozen=True)
class Prompt:
    """One prompt as a conversation; `token_ids` is empty until `encode` has run.

    `output_len`: the most new tokens that this prompt may have, where its row says so. `at_s`: seconds after the start
    at which a replayed trace sends it. `turns`: the user's later questions, each asked behind the answer to the one
    before. `left_out`: questions of its row that are never asked, since they answer a recorded answer.
    """

    id: str
    category: str
    messages: tuple[dict[str, str], ...]
    token_ids: tuple[int, ...] = ()
    output_len: int | None = None
    at_s: float | None = None
    turns: tuple[str, ...] = ()
    left_out: int = 0

    def after(self, answer: str) -> Prompt:
        """The conversation with this answer and the next question; without token ids."""
        said = ({"role": "assistant", "content": answer}, {"role": "user", "content": self.turns[0]})
        return replace(self, messages=(*self.messages, *said), turns=self.turns[1:], token_ids=())


def read_row(row: object, number: int) -> Prompt:
    """A row as a prompt; raises ValueError saying what was found instead."""
    if not isinstance(row, dict):
        raise ValueError(f"a {_kind(row)} where an object belongs")
    category = row.get("category", UNNAMED_CATEGORY)
    if not isinstance(category, str) or not category:
        raise ValueError(f"category is {category!r}; it must be a non-empty string")
    name = row.get("id", row.get("question_id", f"line-{number}"))
    messages, turns, left_out = _messages(row)
    length, at_s = output_length(row), timestamp(row)
    return Prompt(str(name), category, tuple(messages), (), length, at_s, tuple(turns), left_out)


def output_length(row: dict[str, Any]) -> int | None:
    """`output_length` or `output_tokens` of a row. Raises ValueError for anything but a number above 0."""
    for key in ("output_length", "output_tokens"):
        value = row.get(key)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{key} is {value!r}; it must be a whole number above 0")
            return value
    return None


def timestamp(row: dict[str, Any]) -> float | None:
    """`timestamp` of a row of a trace, as it stands. Raises ValueError for anything but a number of 0 or above."""
    value = row.get("timestamp")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"timestamp is {value!r}; it must be a number of 0 or above")
    return float(value)


def _messages(row: dict[str, Any]) -> tuple[list[dict[str, str]], list[str], int]:
    """The conversation up to where the first answer is wanted, the later questions, and how many are left out."""
    if "messages" in row:
        return *_asked_in_turn(_conversation(row["messages"])), 0
    if "turns" in row:
        turns = row["turns"]
        if not isinstance(turns, list) or not turns:
            raise ValueError("turns must be a non-empty list of strings")
        first, *later = [_text(turn, f"turns[{place}]") for place, turn in enumerate(turns)]
        return [{"role": "user", "content": first}], later, 0
    if "conversations" in row:
        messages, left_out = _sharegpt(row["conversations"])
        return messages, [], left_out
    if "prompt" in row:
        return [{"role": "user", "content": _text(row["prompt"], "prompt")}], [], 0
    keys = ", ".join(sorted(map(str, row))) or "none"
    raise ValueError(f"no messages, turns, conversations or prompt (keys: {keys})")


def _asked_in_turn(messages: list[dict[str, str]]) -> tuple[list[dict[str, str]], list[str]]:
    """The messages up to the first that another of the user's follows at once, and those that follow: SPEED-Bench's
    prepared rows write the questions of a conversation so, without answers.
    """
    roles = [message["role"] for message in messages]
    for place in range(1, len(messages)):
        if set(roles[place - 1 :]) == {"user"}:
            return messages[:place], [message["content"] for message in messages[place:]]
    return messages, []


def _sharegpt(turns: object) -> tuple[list[dict[str, str]], int]:
    """What stands before the first answer, as the field's clients take it; further turns are counted."""
    if not isinstance(turns, list):
        raise ValueError("conversations must be a list")
    found: list[dict[str, str]] = []
    for place, turn in enumerate(turns):
        role = SHAREGPT_ROLES.get(str(turn.get("from", turn.get("role", "human")))) if isinstance(turn, dict) else None
        if role is None:
            raise ValueError(f"conversations[{place}] must be an object with from (human, gpt or system) and value")
        if role == "assistant":
            if found:
                return found, sum(_asks(later) for later in turns[place:])
            continue
        value = turn.get("value", turn.get("content"))
        if value == "":
            raise NoQuestion("conversations asks nothing")
        found.append({"role": role, "content": _text(value, f"conversations[{place}].value")})
    if not found:
        raise NoQuestion("conversations holds nothing but answers")
    return found, 0


def _asks(turn: object) -> bool:
    return isinstance(turn, dict) and SHAREGPT_ROLES.get(str(turn.get("from", turn.get("role")))) == "user"


def _conversation(messages: object) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a non-empty list")
    found = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError(f"messages[{place}] must be an object with role and content")
        content = _text(_joined(message.get("content")), f"messages[{place}].content")
        found.append({"role": message["role"], "content": content})
    # Training rows end with the wanted answer; here the model has to give it.
    while found and found[-1]["role"] == "assistant":
        found.pop()
    if not found:
        raise ValueError("messages holds nothing but answers of the assistant")
    return found


def _joined(content: object) -> object:
    """OpenAI's list of content parts as one text; anything else unchanged."""
    if not isinstance(content, list):
        return content
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        raise ValueError("content parts other than text cannot be benchmarked")
    return "".join(str(part.get("text", "")) for part in content)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is {_kind(value)}; it must be a non-empty string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds half a character (a lone surrogate)") from None
    if PLACEHOLDER in value:
        raise ValueError(f"{name} is a placeholder of SPEED-Bench; prepare the data set with its own script first")
    return value


def _kind(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return "string"
    names = {dict: "object", list: "list", str: "blank string", bool: "boolean", int: "number", float: "number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
