"""Prompts from files in the common shapes, bad rows by line, chosen evenly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specctl.bench.prompt_rows import Prompt
from specctl.bench.workloads import Workload, choose, encode, read_workload
from specctl.errors import MissingError, SpecctlError, UsageError


def write(folder: Path, *rows: object) -> str:
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return str(path)


def user(text: str) -> tuple[dict[str, str], ...]:
    return ({"role": "user", "content": text},)


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"prompt": "Hi"}, Prompt("line-1", "all", user("Hi"))),
        ({"prompt": "Hi", "category": "chat", "id": 7}, Prompt("7", "chat", user("Hi"))),
        (
            {"question_id": 81, "category": "writing", "turns": ["One", "Two"]},
            Prompt("81", "writing", user("One"), turns=("Two",)),
        ),
        ({"messages": [{"role": "user", "content": "Hi"}]}, Prompt("line-1", "all", user("Hi"))),
        (
            {"id": "s", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
            Prompt("s", "all", user("Hi")),
        ),
        (
            {
                "conversations": [
                    {"from": "gpt", "value": "Welcome"},
                    {"from": "human", "value": "Hi"},
                    {"from": "gpt", "value": "Hello"},
                    {"from": "human", "value": "And now?"},
                ]
            },
            Prompt("line-1", "all", user("Hi"), left_out=1),
        ),
        (
            {"messages": [{"role": "system", "content": "Be kind."}, *user("One"), *user("Two")]},
            Prompt("line-1", "all", ({"role": "system", "content": "Be kind."}, *user("One")), turns=("Two",)),
        ),
        (
            {"messages": [*user("One"), *user("Two"), {"role": "assistant", "content": "Hm"}, *user("Three")]},
            Prompt(
                "line-1",
                "all",
                (*user("One"), *user("Two"), {"role": "assistant", "content": "Hm"}, *user("Three")),
            ),
        ),
        ({"prompt": "Hi", "output_tokens": 9, "timestamp": 1.5}, Prompt("line-1", "all", user("Hi"), (), 9, 1.5)),
        (
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]},
            Prompt("line-1", "all", user("Hi")),
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
            Prompt("line-1", "all", user("ab")),
        ),
    ],
)
def test_shapes(tmp_path: Path, row: dict[str, Any], prompt: Prompt) -> None:
    assert read_workload(write(tmp_path, row)).prompts == (prompt,)


def test_blank_lines_and_a_byte_order_mark_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\n{"prompt": "a"}\r\n\n{"prompt": "b"}\n')
    assert [prompt.id for prompt in read_workload(str(path)).prompts] == ["line-2", "line-4"]


def test_a_line_separator_inside_a_string_is_no_new_row(tmp_path: Path) -> None:
    [prompt] = read_workload(write(tmp_path, '{"prompt": "a\u2028b"}')).prompts
    assert prompt.messages[0]["content"] == "a\u2028b"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{nope", "line 1, column 2: not JSON"),
        ([1], "line 1: a list where an object belongs"),
        ({"question": "x"}, "line 1: no messages, turns, conversations or prompt (keys: question)"),
        ({"prompt": 3}, "line 1: prompt is number"),
        ({"prompt": " "}, "line 1: prompt is blank string"),
        ({"turns": []}, "line 1: turns must be a non-empty list"),
        ({"messages": []}, "line 1: messages must be a non-empty list"),
        ({"messages": [{"content": "x"}]}, "line 1: messages[0] must be an object with role and content"),
        ({"messages": [{"role": "user", "content": None}]}, "line 1: messages[0].content is null"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "line 1: messages holds nothing but answers"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "line 1: content parts other than text"),
        ({"prompt": "x", "category": 3}, "line 1: category is 3"),
        ({"conversations": [{"from": "gpt", "value": "x"}]}, "line 1: conversations holds nothing but answers"),
        ({"conversations": [{"from": "robot", "value": "x"}]}, "line 1: conversations[0] must be an object with from"),
        ({"prompt": "x", "output_length": 0}, "line 1: output_length is 0"),
        ({"prompt": "x", "timestamp": "soon"}, "line 1: timestamp is 'soon'"),
        ({"turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"]}, "line 1: turns[0] is a placeholder of"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: object, complaint: str) -> None:
    with pytest.raises(SpecctlError) as caught:
        read_workload(write(tmp_path, row))
    assert complaint in caught.value.message
    assert caught.value.exit_code == 1


def test_every_bad_row_is_counted_and_the_first_five_shown(tmp_path: Path) -> None:
    with pytest.raises(SpecctlError) as caught:
        read_workload(write(tmp_path, {"prompt": "good"}, *[{}] * 7))
    assert "7 row(s) are no prompt" in caught.value.message
    assert "line 6" in caught.value.message
    assert "line 7" not in caught.value.message
    assert "and 2 more" in caught.value.message


def test_missing_empty_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot read the prompts"):
        read_workload(str(tmp_path / "absent.jsonl"))
    with pytest.raises(MissingError, match=r"no \.jsonl file lies in"):
        read_workload(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(SpecctlError, match="not UTF-8"):
        read_workload(str(tmp_path / "binary"))
    with pytest.raises(SpecctlError, match="holds no prompts"):
        read_workload(write(tmp_path, ""))


def many(**counts: int) -> Workload:
    prompts = [Prompt(f"{name}-{n}", name, user("x")) for name, count in counts.items() for n in range(count)]
    return Workload("bundled", tuple(prompts))


def test_prompts_are_taken_from_each_category_in_turn() -> None:
    chosen = choose(many(coding=5, math=2, writing=3), None, 7)
    assert [p.id for p in chosen.prompts] == [
        "coding-0",
        "math-0",
        "writing-0",
        "coding-1",
        "math-1",
        "writing-1",
        "coding-2",
    ]


def test_categories_select() -> None:
    chosen = choose(many(coding=5, math=2, writing=3), ["math", "writing"])
    assert Counter(p.category for p in chosen.prompts) == {"math": 2, "writing": 3}


def test_unknown_category_and_too_many_prompts_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="no prompts of category 'poems'") as caught:
        choose(many(coding=5), ["poems"])
    assert caught.value.help == "the categories here are coding"
    with pytest.raises(UsageError, match="6 prompts are wanted, 5 are there"):
        choose(many(coding=5), None, 6)


class Target:
    """Encodes a text as its length, a conversation as the lengths of its messages and a 0."""

    def __init__(self, has_chat_template: bool) -> None:
        self.has_chat_template = has_chat_template

    def encode(self, text: str) -> list[int]:
        return [len(text)]

    def encode_chat(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        return [*(len(message["content"]) for message in messages), 0]


def test_the_chat_template_is_used_where_there_is_one() -> None:
    work = Workload("x", (Prompt("a", "all", (*user("abc"), *user("de"))),))
    assert encode(work, Target(True)).prompts[0].token_ids == (3, 2, 0)
    assert encode(work, Target(False)).prompts[0].token_ids == (len("abc\n\nde"),)


def test_the_bundled_prompts_hold_four_categories_of_four() -> None:
    counts = Counter(prompt.category for prompt in choose(read_workload(), None, 16).prompts)
    assert counts == {"coding": 4, "math": 4, "summarization": 4, "writing": 4}


def test_a_json_array_and_a_folder_of_files_are_read(tmp_path: Path) -> None:
    rows = [{"id": "a", "conversations": [{"from": "human", "value": "Hi"}]}]
    (tmp_path / "sharegpt.json").write_text(json.dumps(rows))
    assert [prompt.id for prompt in read_workload(str(tmp_path / "sharegpt.json")).prompts] == ["a"]
    folder = tmp_path / "speed"
    folder.mkdir()
    for name in ("qualitative", "throughput_1k"):
        row = {"question_id": 1, "category": "math", "messages": [{"role": "user", "content": name}]}
        (folder / f"{name}.jsonl").write_text(json.dumps(row))
    found = read_workload(str(folder))
    assert [prompt.id for prompt in found.prompts] == ["qualitative/1", "throughput_1k/1"]


def test_turns_that_are_not_asked_are_told(tmp_path: Path) -> None:
    talk = [{"from": who, "value": who} for who in ("human", "gpt", "human", "gpt")]
    found = read_workload(write(tmp_path, {"conversations": talk}, {"turns": ["One", "Two"]}))
    assert found.notes == ("of 1 recorded conversations only what stands before their first answer is asked",)


def test_the_prompts_in_plain_english_hold_eight_categories_of_eight() -> None:
    found = read_workload("text")
    counts = Counter(prompt.category for prompt in found.prompts)
    names = ("coding", "code-editing", "math", "summarization", "rag", "translation", "writing", "chat")
    assert counts == dict.fromkeys(names, 8)
    assert len({prompt.messages[-1]["content"] for prompt in found.prompts}) == 64
    assert all(prompt.messages[-1]["role"] == "user" for prompt in found.prompts)
    assert all(len(prompt.messages) == 3 for prompt in found.prompts if prompt.category == "chat")


def test_rounds_bring_other_prompts() -> None:
    ids = [prompt.id for prompt in choose(many(coding=6, math=6), None, 4, rounds=5).prompts]
    assert len(ids) == len(set(ids)) == 12


def test_sharegpts_files_are_read_with_all_their_oddities(tmp_path: Path) -> None:
    """Answers by several models, role and content, nobody asks: a note, and the rest is asked."""
    talks = [
        [{"from": "human", "value": "One"}, {"from": "chatgpt", "value": "Yes"}, {"from": "human", "value": "More"}],
        [{"from": "bing", "value": "Hello"}, {"from": "user", "value": "Two"}, {"from": "bard", "value": "No"}],
        [{"role": "user", "content": "Three"}, {"role": "assistant", "content": "Fine"}],
        [],
        [{"from": "gpt", "value": "Alone"}],
        [{"from": "human", "value": ""}],
    ]
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps([{"id": str(number), "conversations": talk} for number, talk in enumerate(talks)]))
    found = read_workload(str(path))
    assert [prompt.messages for prompt in found.prompts] == [user("One"), user("Two"), user("Three")]
    assert found.notes == (
        "of 1 recorded conversations only what stands before their first answer is asked",
        "3 recorded conversations hold no question and are left out",
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "\ud800"}, "prompt holds half a character"),
        ({"conversations": [{"from": "oracle", "value": "x"}]}, "conversations[0] must be an object"),
        ({"turns": ["a", ""]}, "turns[1] is blank string"),
        ("word", "a string where an object belongs"),
    ],
)
def test_rows_that_cannot_be_asked_are_named(tmp_path: Path, row: Any, why: str) -> None:
    with pytest.raises(SpecctlError, match="1 row") as caught:
        read_workload(write(tmp_path, json.dumps(row)))
    assert why in caught.value.message
