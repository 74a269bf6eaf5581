"""Answers that keep to a grammar, through llguidance: which tokens may come next, at every row that is verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence as Many
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.adjust import Part, Paths

# As JSON is printed: nothing, a space, or a new line with its indentation. Without a bound a model that has never seen
# JSON could write blanks until its tokens are used up.
_WHITESPACE = r"(\n {0,20}| ?)"
_BANNED = float("-inf")


def of_json_schema(schema: Mapping[str, Any]) -> str:
    """The grammar of JSON texts that ``schema`` describes."""
    import llguidance

    options: Any = {"whitespace_pattern": _WHITESPACE}
    return llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)


def of_regex(regex: str) -> str:
    """The grammar of the texts that ``regex`` matches from end to end (syntax of Rust's regex)."""
    import llguidance

    return llguidance.LLMatcher.grammar_from_regex(regex)


def of_choices(choices: Many[str]) -> str:
    """The grammar of these texts and no other."""
    import llguidance

    rule = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    return llguidance.LLMatcher.grammar_from_lark(f"start: {rule}")


def of_rules(text: str) -> str:
    """A context-free grammar in Lark's or llama.cpp's (GBNF) notation. Raises SpecctlError where it is neither."""
    from llguidance import grammar_from

    try:
        return grammar_from("grammar", text)
    except ValueError as error:
        raise SpecctlError(f"the grammar cannot be read: {error}") from None


def of_calls(calls: Many[tuple[str, Mapping[str, Any]]], parallel: bool) -> str:
    """The grammar of a JSON array of ``{"name": …, "parameters": …}``, of one element where not ``parallel``.

    ``calls``: each function's name as JSON text, and the schema of its parameters, which is a root of its own.
    """
    import llguidance

    options = {"x-guidance": {"whitespace_pattern": _WHITESPACE}}
    more = '("," " "? call)* ' if parallel else ""
    lines = [f'start: "[" call {more}"]"']
    lines.append("call: " + " | ".join(f"call{i}" for i in range(len(calls))))
    for i, (name, schema) in enumerate(calls):
        begin = json.dumps(f'{{"name": {name}, "parameters": ', ensure_ascii=False)
        lines.append(f'call{i}: {begin} parameters{i} "}}"')
        lines.append(f"parameters{i}: %json {json.dumps({**schema, **options})}")
    return llguidance.LLMatcher.grammar_from_lark("\n".join(lines))


def of_tagged_calls(calls: Many[tuple[str, Mapping[str, Any]]], parallel: bool, tags: tuple[str, str]) -> str:
    """The grammar of any text in which what stands between ``tags`` is ``{"name": …, "arguments": …}`` of one of
    ``calls`` (as in `of_calls`); where not ``parallel``, the text ends with its first call.
    """
    import llguidance

    begin, end = (json.dumps(tag) for tag in tags)
    options = {"x-guidance": {"whitespace_pattern": _WHITESPACE}}
    lines = ["%llguidance {}", "start: call* TEXT" if parallel else "start: call BLANK | TEXT"]
    # The lazy lexeme ends where the first tag does, so no other text can hold one.
    lines += [r"TEXT: /(.|\n)*/", r"BLANK: /\s*/", f"head[lazy]: TEXT {begin}"]
    lines.append(f"call: head BLANK ({' | '.join(f'call{i}' for i in range(len(calls)))}) BLANK {end}")
    for i, (name, schema) in enumerate(calls):
        opening = json.dumps(f'{{"name": {name}, "arguments": ', ensure_ascii=False)
        lines.append(f'call{i}: {opening} arguments{i} "}}"')
        lines.append(f"arguments{i}: %json {json.dumps({**schema, **options})}")
    return llguidance.LLMatcher.grammar_from_lark("\n".join(lines))


class GrammarCompiler:
    """Grammars over one tokenizer."""

    def __init__(self, tokenizer: Any, vocab_size: int, eos: Many[int]) -> None:
        """``vocab_size``: width of the logits; ``eos``: the ids that may end an answer. Raises SpecctlError where
        llguidance cannot read the tokenizer.
        """
        from llguidance.hf import from_tokenizer

        try:
            self.vocabulary = from_tokenizer(tokenizer, n_vocab=vocab_size, eos_token=sorted(eos))
        except Exception as error:  # the library raises what its parts raise
            raise SpecctlError(f"llguidance cannot read this model's tokenizer: {error}") from error
        self.check = lru_cache(maxsize=256)(self._check)

    def _check(self, grammar: str) -> str | None:
        """What is wrong with a grammar, in the library's words; None where it can be followed."""
        import llguidance

        refused, messages = llguidance.LLMatcher.validate_grammar_with_warnings(grammar, self.vocabulary)
        return "; ".join(message.strip() for message in messages) if refused else None

    def start(self, grammar: str) -> Grammar:
        """A follower of ``grammar`` at its beginning. Raises SpecctlError for one that cannot be followed."""
        import llguidance

        matcher = llguidance.LLMatcher(self.vocabulary, grammar, log_level=0)
        if matcher.is_error():
            raise SpecctlError(f"the grammar cannot be followed: {_reason(matcher)}")
        return Grammar(matcher)


def _reason(matcher: Any) -> str:
    """The library's error without the dump behind it, which holds the grammar and the answer so far."""
    reason: str = matcher.get_error()
    return reason.split("\n<state>", 1)[0].strip()


class Grammar(Part):
    """Where one answer stands in its grammar."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def change(self, rows: Tensor, paths: Paths) -> None:
        """Rows behind a token that the grammar does not allow stay as they are: verification never gets there."""
        for row, path in zip(rows, paths, strict=True):
            legal = self._matcher.try_consume_tokens(list(path))
            if legal == len(path):
                row.masked_fill_(self._banned(row), _BANNED)
            self._matcher.rollback(legal)
        self._raise_error()

    def _banned(self, row: Tensor) -> Tensor:
        allowed = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        return (allowed[: len(row)] == 0).to(row.device)

    def legal(self, path: Many[int]) -> int:
        """How many tokens at the beginning of ``path`` the grammar allows."""
        return int(self._matcher.validate_tokens(list(path)))

    def take(self, token: int) -> None:
        """Raises SpecctlError for a token that the grammar does not allow."""
        self._matcher.consume_token(token)
        self._raise_error()

    def _raise_error(self) -> None:
        if self._matcher.is_error():
            raise SpecctlError(f"the grammar cannot be followed any further: {_reason(self._matcher)}")
