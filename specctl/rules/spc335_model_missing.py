"""The command starts a server without a model, or with a placeholder name.

Bad:

    sglang: python -m sglang.launch_server --speculative-algorithm NGRAM

Good:

    sglang: python -m sglang.launch_server --model-path org/target --speculative-algorithm NGRAM
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)


def check(reading: Reading) -> Iterator[Finding]:
    """Only whole command lines must name a model."""
    if reading.notes.get("entry") and reading.around.target is None:
        yield Finding("SPC335", "no model is given", help="add --model-path MODEL")
    if reading.notes.get("model_path") in ("dummy", "none") and reading.given("speculative_algorithm"):
        yield Finding(
            "SPC335",
            f"the placeholder model {reading.notes['model_path']!r} skips the resolution, and the last check fails",
            help="give a model",
        )
