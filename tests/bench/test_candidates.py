"""Which settings are measured, their names, and the complaints about options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.bench import candidates
from specctl.bench.all_methods import choose_all
from specctl.bench.candidates import (
    assistant,
    choose_specs,
    common_target,
    draft_options,
    method_names,
    named,
    number_list,
)
from specctl.errors import UsageError
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram


@pytest.fixture(autouse=True)
def _bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bundled models, only `demo` and `demo-draft` are there."""
    monkeypatch.setattr(candidates, "bundled_model", lambda name: name if name in ("demo", "demo-draft") else None)


NGRAM4 = SpecDecodeConfig(Ngram(2, 4), 4)
DRAFT4 = SpecDecodeConfig(DraftModel(), 4, model="demo-draft")


def test_the_default_on_demo() -> None:
    assert choose_specs([], None, [4], {}, "demo") == [NGRAM4, DRAFT4]


def test_the_default_elsewhere_needs_no_draft() -> None:
    assert choose_specs([], None, [4], {}, "./llama") == [NGRAM4]


def test_a_draft_that_is_given_is_measured_beside_ngram() -> None:
    found = choose_specs([], None, [4], {"draft_model": "./small"}, "./llama")
    assert found == [NGRAM4, SpecDecodeConfig(DraftModel(), 4, model="./small")]


def test_given_settings_replace_the_default_and_add_to_methods() -> None:
    own = SpecDecodeConfig(Ngram(1, 3), 5)
    assert choose_specs([own], None, [4], {}, "demo") == [own]
    assert choose_specs([own], "ngram", [4], {}, "demo") == [NGRAM4, own]


def test_methods_by_k() -> None:
    found = choose_specs([], "ngram, draft-model,none,ngram", [2, 4], {}, "demo")
    assert [(spec.method.name, spec.num_speculative_tokens) for spec in found] == [
        ("ngram", 2),
        ("ngram", 4),
        ("draft_model", 2),
        ("draft_model", 4),
    ]


def test_none_alone_measures_plain_decoding() -> None:
    assert choose_specs([], "none", [4], {}, "demo") == []


@pytest.mark.parametrize(
    ("methods", "message", "help"),
    [
        ("ngrma", "no method is called 'ngrma'", "did you mean ngram?"),
        ("lookahead", "'lookahead' cannot be run by specctl's own runtime", "the methods are none, ngram"),
        (" , ", "--methods is empty", "the methods are none, ngram"),
    ],
)
def test_methods_that_are_none(methods: str, message: str, help: str) -> None:
    with pytest.raises(UsageError) as caught:
        method_names(methods)
    assert message in caught.value.message
    assert (caught.value.help or "").startswith(help)


def test_a_method_without_its_draft_is_named() -> None:
    with pytest.raises(UsageError, match="eagle3 needs a draft for the target demo") as caught:
        choose_specs([], "eagle3", [4], {}, "demo")
    assert caught.value.help == "give one: --draft eagle3=MODEL"
    with pytest.raises(UsageError, match=r"draft_model needs a draft for the target \./llama"):
        choose_specs([], "draft_model", [4], {}, "./llama")


@pytest.mark.parametrize(
    ("drafts", "message"),
    [
        ({"eagel": "x"}, "no method is called 'eagel'"),
        ({"ngram": "x"}, "the method ngram takes no draft"),
        ({"eagle": "x"}, "eagle is not measured"),
    ],
)
def test_drafts_that_nobody_uses(drafts: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_specs([], "ngram", [4], drafts, "demo")


def test_draft_options() -> None:
    assert draft_options(["draft-model=a=b", "eagle=c"]) == {"draft_model": "a=b", "eagle": "c"}
    for wrong in ("eagle", "=x", "eagle="):
        with pytest.raises(UsageError, match="must look like draft_model=MODEL"):
            draft_options([wrong])


def test_names_get_a_number_where_method_and_k_stand_twice() -> None:
    found = named([(NGRAM4, 4), (DRAFT4, 4), (NGRAM4, 4), (NGRAM4, 2), (NGRAM4, 4)])
    assert [(each.name, each.k) for each in found] == [
        ("ngram", 4),
        ("draft_model", 4),
        ("ngram-2", 4),
        ("ngram", 2),
        ("ngram-3", 4),
    ]


@pytest.mark.parametrize(
    ("text", "numbers"), [("4", [4]), ("2,4", [2, 4]), ("1..7", [1, 2, 3, 4, 5, 6, 7]), ("8, 1..2,2", [1, 2, 8])]
)
def test_number_lists(text: str, numbers: list[int]) -> None:
    assert number_list(text, "--k") == numbers


@pytest.mark.parametrize(
    "text", ["", "four", "0", "-1", "1.5", "3..1", "1..", "..4", "1...4", "1,,2", "1..99999999999", "²", "129"]
)
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--k is "):
        number_list(text, "--k", largest=128)


@given(st.text(max_size=8))
def test_any_text_is_numbers_or_a_usage_error(text: str) -> None:
    try:
        found = number_list(text, "--k", largest=128)
    except UsageError:
        return
    assert found == sorted(set(found))
    assert found[0] >= 1


def test_the_target_is_the_typed_one_else_the_settings() -> None:
    llama, qwen = (SpecDecodeConfig(Ngram(), 4, target=name) for name in ("llama", "qwen"))
    assert common_target("demo", [llama]) == "demo"
    assert common_target(None, [NGRAM4, llama]) == "llama"
    assert common_target(None, []) == "demo"
    with pytest.raises(UsageError, match="several targets: llama, qwen"):
        common_target(None, [llama, qwen])


def test_the_assistant_of_a_peer() -> None:
    assert assistant([DRAFT4], {}, "x") == "demo-draft"
    assert assistant([], {"draft_model": "y"}, "x") == "y"
    assert assistant([NGRAM4], {}, "demo") == "demo-draft"
    assert assistant([], {}, "x") is None


def test_all_methods_take_what_is_at_hand() -> None:
    specs, notes = choose_all(None, [4], {"eagle3": "./head"}, "demo")
    assert [spec.method.name for spec in specs] == ["ngram", "suffix", "draft_model", "eagle3", "mtp"]
    assert next(spec.model for spec in specs if spec.method.name == "eagle3") == "./head"
    assert any("medusa is left out" in note and "--draft medusa=MODEL" in note for note in notes)
    with pytest.raises(UsageError, match="exclude each other"):
        choose_all("ngram", [4], {}, "demo")
