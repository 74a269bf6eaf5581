"""The n-gram rule against its own definition, written as a search over all places."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.runtime.proposers.ngram import NgramIndex


def by_definition(tokens: list[int], shortest: int, longest: int, latest: bool) -> int | None:
    """The longest suffix of length shortest..longest that occurs earlier; of its occurrences the first (last)."""
    for length in range(longest, shortest - 1, -1):
        places = [
            end
            for end in range(length, len(tokens))
            if length < len(tokens) and tokens[end - length : end] == tokens[-length:]
        ]
        if places:
            return places[-1] if latest else places[0]
    return None


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=30),
    st.integers(1, 3),
    st.integers(0, 3),
    st.booleans(),
    st.integers(1, 5),
)
@settings(max_examples=600, deadline=None)
def test_lookup_is_its_definition_however_the_text_grows(
    tokens: list[int], shortest: int, more: int, latest: bool, stride: int
) -> None:
    index = NgramIndex(shortest, shortest + more, latest)
    for end in range(1, len(tokens) + 1, stride):
        index.extend(tokens[:end])
        assert index.find(tokens[:end]) == by_definition(tokens[:end], shortest, shortest + more, latest)


def test_examples_by_hand() -> None:
    tokens = [1, 2, 3, 9, 1, 2, 4, 1, 2]
    index = NgramIndex(1, 3, latest=False)
    index.extend(tokens)
    assert index.find(tokens) == 2, "the earliest of two matches of [1, 2]"
    index = NgramIndex(1, 3, latest=True)
    index.extend(tokens)
    assert index.find(tokens) == 6
    index = NgramIndex(3, 4, latest=False)
    index.extend(tokens)
    assert index.find(tokens) is None
