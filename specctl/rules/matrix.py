"""Which method runs on which engine and release, found by converting a plain setting and judging the result.

python -m specctl.rules.matrix        writes docs/methods.md
"""

from __future__ import annotations

from pathlib import Path

from specctl.dialects.convert import native_method, read_back
from specctl.dialects.foreign import title
from specctl.dialects.reading import Surroundings
from specctl.rules.judge import judge
from specctl.spec import METHODS, SpecDecodeConfig
from specctl.spec.release import KNOWN_RELEASES

COLUMNS = [(engine, release) for engine, releases in KNOWN_RELEASES.items() for release in releases]


def plain_spec(method: str) -> SpecDecodeConfig:
    """A small setting of a method."""
    found = METHODS[method]
    count = {"extract_hidden_states": 1, "auto": None}.get(method, 4)
    instance = found(aux_layers=(1, 15, 28)) if method == "extract_hidden_states" else found()  # type: ignore[call-arg]
    options = {"trtllm": {"output_directory": "states"}} if method == "extract_hidden_states" else {}
    if method == "uno":
        options = {"sglang": {"uno_lora_path": "adapter"}}
    model = (
        "pkg.Proposer" if method == "custom_class" else "org/draft" if found.needs_model or method == "dspark" else None
    )
    return SpecDecodeConfig(instance, count, model=model, engine_options=options)


def cell(method: str, engine: str, release: str) -> str:
    """`runs`, `refused`, `fails at start` or `no counterpart`."""
    spec = plain_spec(method)
    if native_method(spec, engine, release) is None:
        return "no counterpart"
    verdict = judge(read_back(spec, engine, release, Surroundings())).verdict
    return {"accepts": "runs", "refuses": "refused", "fails-at-start": "fails at start"}[verdict]


def table() -> str:
    """The Markdown table of methods and engines."""
    names = [
        f"{title(engine)} {release}" if engine != "specctl" else "specctl's own runtime" for engine, release in COLUMNS
    ]
    lines = [
        "# Methods and engines",
        "",
        "Made by `python -m specctl.rules.matrix`: a plain setting of each method, written for each engine and judged.",
        "",
        "| method | " + " | ".join(names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for method in METHODS:
        lines.append(f"| {method} | " + " | ".join(cell(method, engine, release) for engine, release in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "methods.md").write_text(table(), encoding="utf-8")
