"""Text while it arrives: whole characters, no piece of a stop string, and in the end exactly the decoded output."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.runtime.text import TextStream
from tests.runtime.kit import byte_tokenizer

TOKENIZER = byte_tokenizer()


def decode(ids: list[int]) -> str:
    return str(TOKENIZER.decode(ids, skip_special_tokens=True))


def stream(data: bytes, stop: tuple[str, ...] = ()) -> tuple[list[str], str | None]:
    text = TextStream(decode, stop)  # type: ignore[arg-type]
    pieces = []
    for byte in data:
        found = text.push(byte)
        if found is not None:
            return [*pieces, text.take(True)], found
        pieces.append(text.take(False))
    return [*pieces, text.take(True)], None


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_the_pieces_are_whole_characters_and_add_up(text: str) -> None:
    pieces, found = stream(text.encode())
    assert found is None
    assert "".join(pieces) == text
    # Some character decodes to the replacement mark itself; no other piece may hold one.
    assert not any("\ufffd" in piece for piece in pieces if "\ufffd" not in text)


@given(st.text("ab", max_size=14), st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
@settings(max_examples=400, deadline=None)
def test_stop_strings_end_the_text_where_the_first_one_is_complete(text: str, stops: list[str]) -> None:
    pieces, found = stream(text.encode(), tuple(stops))
    ends = [end for end in range(1, len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    if not ends:
        assert (found, "".join(pieces)) == (None, text)
        return
    begins = {stop: ends[0] - len(stop) for stop in stops if text[: ends[0]].endswith(stop)}
    assert "".join(pieces) == text[: min(begins.values())]
    assert found is not None
    assert begins[found] == min(begins.values())
    shown = ""
    for piece in pieces:
        shown += piece
        assert not any(stop in shown for stop in stops)


def test_what_could_become_a_stop_string_is_held_back() -> None:
    text = TextStream(decode, ("END", "DONE"))  # type: ignore[arg-type]
    shown = []
    for byte in b"xENDO":
        text.push(byte)
        shown.append(text.take(False))
        if text._ended:
            break
    assert shown == ["x", "", "", ""]


def test_an_output_that_ends_inside_a_character_shows_its_replacement() -> None:
    pieces, _ = stream("é".encode()[:1] + b"")
    assert "".join(pieces) == "\ufffd"
    pieces, _ = stream("aé日".encode()[:-1])
    assert "".join(pieces) == "aé\ufffd"
