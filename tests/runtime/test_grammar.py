"""Answers that keep to a grammar, with drafts on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import chisquare

from specctl.errors import SpecctlError
from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft, cut
from specctl.runtime.grammar import of_choices, of_json_schema, of_regex, of_rules
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.runtime.kit import EOS, OPTIONS, ask, run

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
GRAMMARS = {
    "schema": of_json_schema(SCHEMA),
    "regex": of_regex("(ab){3,5}[0-9]{2}"),
    "choice": of_choices(["yes", 'no "never"', "naïve"]),
    "lark": of_rules('start: "a" start "b" | "c"'),
    "gbnf": of_rules('root ::= "x" ("y" | "z")+ "."'),
}


def matches(name: str, text: str) -> bool:
    if name == "schema":
        found = json.loads(text)
        return set(found) == {"name", "n"} and len(found["name"]) <= 5 and 0 <= found["n"] <= 99
    if name == "choice":
        return text in ("yes", 'no "never"', "naïve")
    if name == "lark":
        return text == "a" * (len(text) // 2) + "c" + "b" * (len(text) // 2)
    return re.fullmatch({"regex": "(ab){3,5}[0-9]{2}", "gbnf": "x[yz]+[.]"}[name], text) is not None


@pytest.mark.parametrize("temperature", [0.0, 1.0], ids=["greedy", "coupled"])
@pytest.mark.parametrize("draft", ["ngram", "relative"])
def test_answers_keep_to_the_grammar_and_a_draft_changes_none(
    draft: str, temperature: float, exact: Callable[..., Target], relative: Callable[..., Path]
) -> None:
    method = Ngram(prompt_lookup_min=1, prompt_lookup_max=3) if draft == "ngram" else DraftModel()
    model = None if draft == "ngram" else str(relative())
    spec = SpecDecodeConfig(method, 4, model=model, acceptance=Acceptance(method="coupled"))
    prompt = list(b'ababab12 {"name": "ab", "n": 1} xyz. aacbb')
    requests = [
        ask(f"{name}-{seed}", prompt, grammar=grammar, temperature=temperature, seed=seed, max_tokens=48)
        for name, grammar in GRAMMARS.items()
        for seed in range(3)
    ]
    plain = run(Engine(exact(), None, EngineOptions(1, coupled=True)), requests)
    engine = make_engine(exact(), spec, OPTIONS)
    drafted = run(engine, requests)
    for request in requests:
        left, right = plain[request.id], drafted[request.id]
        assert (left["tokens"], left["text"], left["finish"]) == (right["tokens"], right["text"], right["finish"])
        if left["finish"] == "stop":
            assert left["tokens"][-1] == EOS
            assert matches(request.id.split("-")[0], left["text"]), left["text"]
    assert sum(result["finish"] == "stop" for result in plain.values()) >= 8
    assert engine.stats.num_accepted_tokens


def test_a_draft_is_cut_where_it_breaks_the_grammar(exact: Callable[..., Target]) -> None:
    grammar = exact().grammars.start(GRAMMARS["regex"])
    for token in b"ab":
        grammar.take(token)
    assert cut(Draft(list(b"abxab")), grammar) == Draft(list(b"ab"))
    whole = Draft(list(b"abab"))
    assert cut(whole, grammar) is whole
    ended = Draft([*b"abab77", EOS, 5])
    assert cut(ended, grammar) == Draft([*b"abab77", EOS]), "behind the grammar's end nothing may come"
    for token in b"abab77":
        grammar.take(token)
    assert cut(Draft([65, 66]), grammar) == Draft([])


def test_what_is_left_of_a_sampled_draft_has_the_chances_it_was_drawn_with(exact: Callable[..., Target]) -> None:
    grammar = exact().grammars.start(of_regex("[ab][ab]"))
    probs = torch.zeros(3, 258)
    probs[0, [97, 98, 99]] = torch.tensor([0.2, 0.2, 0.6])
    probs[1:, [97, 99]] = 0.5
    left = cut(Draft([97, 97, 99], probs), grammar)
    assert left.tokens == [97, 97]
    assert left.probs is not None
    assert left.probs[0, [97, 98, 99]].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert left.probs[1, [97, 99]].tolist() == [1.0, 0.0]


def test_sampled_answers_follow_the_target_over_the_allowed_tokens(
    exact: Callable[..., Target], checkpoint: Callable[..., Path]
) -> None:
    """A draft of another model that samples: half of what it offers is not allowed."""
    spec = SpecDecodeConfig(DraftModel(), 3, model=str(checkpoint("llama", 1)), draft_sample_method="probabilistic")
    how = {"grammar": of_regex("[a-h][a-h]"), "temperature": 1.5, "max_tokens": 2}
    engine = make_engine(exact(), spec, EngineOptions(32))
    found = run(engine, [ask(f"{i}", list(b"abc"), seed=i, **how) for i in range(1500)])
    seen = Counter(tuple(result["tokens"]) for result in found.values())
    target = exact()
    from specctl.runtime.kv_cache import Span

    letters = list(b"abcdefgh")
    expected = {}

    def chances(text: list[int]) -> list[float]:
        cache = target.model.make_cache(1, len(text))
        logits = target.model.forward(text, [Span(0, 0, len(text))], cache, [len(text) - 1])[0, letters]
        values: list[float] = (logits / 1.5).softmax(-1).tolist()
        return values

    for first, chance in zip(letters, chances(list(b"abc")), strict=True):
        for second, next_chance in zip(letters, chances([*b"abc", first]), strict=True):
            expected[first, second] = chance * next_chance * 1500
    common = [pair for pair, value in expected.items() if value >= 5]
    rest = 1500 - sum(expected[pair] for pair in common)
    counted = [seen[pair] for pair in common] + [1500 - sum(seen[pair] for pair in common)]
    assert chisquare(counted, [expected[pair] for pair in common] + [rest]).pvalue >= 1e-4
    assert engine.stats.num_draft_tokens


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"properties": {"a": {"not": {}}}}, "not"),
        ({"type": "integer", "minimum": 3, "maximum": 1}, "minimum"),
        ({"type": "string", "format": "colour"}, "colour"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
    ],
)
def test_what_the_library_lacks_is_named(schema: dict[str, Any], named: str, exact: Callable[..., Target]) -> None:
    message = exact().grammars.check(of_json_schema(schema))
    assert message is not None
    assert named in message


def test_a_grammar_that_cannot_be_followed_does_not_get_in(exact: Callable[..., Target]) -> None:
    engine = Engine(exact(), None, OPTIONS)
    with pytest.raises(SpecctlError, match="unclosed group"):
        engine.add(ask("x", [1], grammar=of_regex("(a")))
    assert not engine.has_work()


def test_min_tokens_gives_way_where_the_grammar_has_ended(exact: Callable[..., Target]) -> None:
    request = ask("x", [1], grammar=of_choices(["ab"]), min_tokens=20)
    assert run(Engine(exact(), None, OPTIONS), [request])["x"]["text"] == "ab"
