"""`specctl report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE.json ...", help="Files of bench --output-json.")],
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write one HTML page of all of them.")] = None,
    format: Annotated[str, typer.Option(help="On standard output: text, json, markdown, csv or vllm.")] = "text",
) -> int:
    """Turn saved benches into a page, or print them again in any format."""
    from specctl.bench.formats import as_text, check_format
    from specctl.bench.report import show
    from specctl.bench.saved import load_report
    from specctl.cli.bench_options import check_writable, write

    check_format(format)
    check_writable(html)
    reports = [load_report(file) for file in files]
    if html is not None:
        from specctl.bench.page import page

        write(html, page(reports, [Path(file).stem for file in files] if len(files) > 1 else ()))
    for place, report in enumerate(reports):
        if html is not None and format == "text":
            continue
        if format == "text":
            sys.stdout.write("\n" * (place > 0))
            show(report)
        else:
            sys.stdout.write(as_text(report, format, detailed=True))
    return 0
