"""The examples inside a rule's docstring: what `explain` shows and what the tests run.

Syntax: a line `Bad:` or `Good:`, a blank line, and an indented line `ENGINE[@RELEASE]: setting`. Lines `target:`,
`draft:`, `args:`, `env:`, `host:` and `platform:` (a `name`) at the left margin give, as JSON, the config.json of the
folders `./target` and `./draft` and the surroundings of all examples."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specctl.rules.catalog import Rule

_FACT = re.compile(r"^(target|draft|args|env|host|platform): (\{.*\})$", re.M)
_EXAMPLE = re.compile(r"^(Bad|Good):\n\n    (\w+)(?:@([\w.]+))?: (.+)$", re.M)


@dataclass(frozen=True)
class Example:
    """One example; `bad` ones must be answered with the rule's code, good ones not."""

    bad: bool
    engine: str
    release: str | None
    text: str
    facts: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Engine and release as written."""
        return self.engine if self.release is None else f"{self.engine} {self.release}"


def examples_of(rule: Rule) -> list[Example]:
    """The examples of a rule in their order."""
    facts = {name: json.loads(text) for name, text in _FACT.findall(rule.page)}
    return [
        Example(kind == "Bad", engine, release or None, text, facts)
        for kind, engine, release, text in _EXAMPLE.findall(rule.page)
    ]


def prose_of(page: str) -> str:
    """The page without its examples."""
    text = _FACT.sub("", _EXAMPLE.sub("", page))
    return re.sub(r"\n{3,}", "\n\n", text).strip()
