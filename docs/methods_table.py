"""Writes the README's table of methods: how each engine spells a method, and what the bundled runtime runs.

    python docs/methods_table.py            # writes the table between its marks in README.md
    python docs/methods_table.py --check    # exit 1 where the README's table is stale

The spellings come from `specctl.convert`, the verdicts from `specctl.check`: the table says what the code does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import specctl
from specctl.runtime.proposers import PROPOSERS
from specctl.spec.methods import METHODS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- methods: made by docs/methods_table.py -->", "<!-- end of methods -->"
ENGINES = (("vllm", "0.31.0"), ("sglang", "0.5.22"), ("trtllm", "1.2.1"), ("trtllm", "1.4.0rc0"))
HEADS = ("method", "vLLM 0.31.0", "SGLang 0.5.22", "TensorRT-LLM 1.2.1", "TensorRT-LLM 1.4.0rc0", "specctl runtime")
WORD = {
    "vllm": r'"method": "(\w+)"',
    "sglang": r"--speculative-algorithm (\w+)",
    "trtllm": r"decoding_type: (?!null)(\w+)",
}


def setting(name: str) -> dict[str, Any]:
    """A plain setting of the method, with a draft where it needs one."""
    found: dict[str, Any] = {"specctl": 1, "method": name, "num_speculative_tokens": 4}
    return found | ({"model": "a-draft"} if METHODS[name].needs_model else {})


def spelling(name: str, engine: str, release: str) -> str:
    """The engine's word for the method, struck out where the release refuses it; a dash where it has none."""
    text = specctl.convert(setting(name), to=engine, to_release=release).text
    word = re.search(WORD[engine], text)
    if word is None:
        return "–"
    pard = " + `parallel_drafting`" if "parallel_drafting" in text else ""
    form = {"vllm": "json", "sglang": "argv", "trtllm": "yaml"}[engine]
    source: Any = text.split() if form == "argv" else text
    report = specctl.check(source, engine=engine, release=release, form=form)
    refused = {d.code for d in report.diagnostics if d.severity == "error"} - {"SPC201"}  # the draft is made up
    return f"~~`{word[1]}`~~ refused" if refused else f"`{word[1]}`{pard}"


def table() -> str:
    """The table as Markdown."""
    rows = ["| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    for name in (name for name, method in METHODS.items() if method.runs_in_specctl):
        cells = [f"`{name}`", *(spelling(name, engine, release) for engine, release in ENGINES)]
        runs = "runs" if name in PROPOSERS else "–"
        rows.append("| " + " | ".join([*cells, runs]) + " |")
    return "\n".join(rows)


def main() -> int:
    """Write or check."""
    text = README.read_text("utf-8")
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    fresh = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if "--check" in sys.argv:
        return int(fresh != text)
    README.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
