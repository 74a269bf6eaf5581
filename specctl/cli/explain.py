"""`specctl explain`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from specctl.errors import UsageError


def command(
    topic: Annotated[
        str, typer.Argument(metavar="CODE|metrics", help="A code such as SPC104, its name, or the word metrics.")
    ],
) -> int:
    """Print the page of one rule, or the definitions of the metrics."""
    from specctl.rules.catalog import rules
    from specctl.rules.pages import metrics, page

    if topic.lower() == "metrics":
        sys.stdout.write(metrics())
        return 0
    wanted = topic.upper()
    found = rules().get(wanted) or next((rule for rule in rules().values() if rule.name == topic.lower()), None)
    if found is None:
        import difflib

        known = [*rules(), *(rule.name for rule in rules().values()), "metrics"]
        near = difflib.get_close_matches(topic, known, n=1) or difflib.get_close_matches(wanted, known, n=1)
        raise UsageError(
            f"there is no rule {topic!r}",
            help=f"did you mean {near[0]}?" if near else "codes are SPC001 and so on, see docs/rules.md",
        )
    sys.stdout.write(page(found))
    return 0
