"""`specctl compare`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from specctl.cli.option_groups import one_of
from specctl.errors import UsageError


def command(
    files: Annotated[list[str], typer.Argument(metavar="A.json B.json ...", help="Files of bench --output-json.")],
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> int:
    """Compare saved benches; the first is the reference. Runs of other prompts or sampling are refused."""
    from specctl.bench import versus
    from specctl.bench.saved import load_report

    if len(files) < 2:
        raise UsageError("one file is named; two or more are compared")
    one_of("--format", format, ("text", "json"))
    reports = [load_report(file) for file in files]
    notes = versus.check_alike(reports, files)
    if format == "text":
        sys.stdout.write(versus.text(reports, files, notes))
        return 0
    against = [
        {"file": name, "changes": [change.as_dict() for change in versus.changes(reports[0], report)]}
        for name, report in zip(files[1:], reports[1:], strict=True)
    ]
    found = {"format_version": 1, "reference": files[0], "notes": notes, "against": against}
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return 0
