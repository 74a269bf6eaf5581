"""Commands with many options: each group is a dataclass, and the command takes one of each; what a word may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import typer

from specctl.errors import UsageError


def one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    """Raises `UsageError` for a word that the option does not take."""
    if value not in allowed:
        raise UsageError(f"{option} is {value!r}; it must be {' or '.join(allowed)}")


def taking(function: Callable[..., int], *groups: type[Any]) -> Callable[..., int]:
    """A Typer command out of `function(ctx, group, group, …)`.

    Every field of a group is an option (or argument): its annotation says how it reads, its default what it is without.
    """
    hints = {group: get_type_hints(group, include_extras=True) for group in groups}

    def command(ctx: typer.Context, **values: Any) -> int:
        built = [group(**{row.name: values[row.name] for row in fields(group)}) for group in groups]
        return function(ctx, *built)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("ctx", kind, annotation=typer.Context)]
    for group in groups:
        for row in fields(group):
            assert row.default is not MISSING, f"{group.__name__}.{row.name} has no default"
            parameters.append(inspect.Parameter(row.name, kind, default=row.default, annotation=hints[group][row.name]))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = function.__doc__
    return command
