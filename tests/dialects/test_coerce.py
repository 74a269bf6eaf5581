"""Our coercions against pydantic itself, whose lax mode vLLM and TensorRT-LLM use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.dialects.coerce import BadValue, lax_bool, lax_float, lax_int

pydantic = pytest.importorskip("pydantic")
ODD = [
    "5",
    " 5\n",
    "\xa05",
    "\x1c5",
    "\uff15",
    "\u0663",
    "1_0",
    "1__0",
    "+5",
    "-5",
    "5.0",
    "5.5",
    "5e0",
    "0x5",
    "05",
    "",
    "5.",
]
ODD += ["NaN", "inf", "-0", " true", "true", "TRUE", "Yes", "f", "2", "on"]
VALUES: list[Any] = [
    *ODD,
    5.0,
    5.5,
    1e20,
    2.0**62,
    -(2.0**62),
    10**30,
    True,
    False,
    None,
    [5],
    {"a": 1},
    0,
    1,
    2,
    0.0,
    0.5,
]
PAIRS = [(int, lax_int), (float, lax_float), (bool, lax_bool)]


def theirs(kind: type, value: Any) -> Any:
    try:
        return pydantic.TypeAdapter(kind).validate_python(value)
    except pydantic.ValidationError:
        return "refused"


def ours(coerce: Any, value: Any) -> Any:
    try:
        return coerce(value)
    except BadValue:
        return "refused"


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("kind", "coerce"), PAIRS)
def test_as_pydantic(kind: type, coerce: Any, value: Any) -> None:
    assert repr(ours(coerce, value)) == repr(theirs(kind, value))


@given(st.integers(-(10**12), 10**12) | st.floats(-1e12, 1e12), st.sampled_from(["", " ", "\t", "\xa0", "\x1d"]))
def test_numbers_in_text(number: float, blank: str) -> None:
    for kind, coerce in PAIRS[:2]:
        assert repr(ours(coerce, f"{blank}{number}{blank}")) == repr(theirs(kind, f"{blank}{number}{blank}"))
