"""A setting in specctl's own format is incomplete.

Bad:

    specctl: {specctl: 1, method: draft_model, num_speculative_tokens: 4}

Good:

    specctl: {specctl: 1, method: draft_model, model: demo-draft, num_speculative_tokens: 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("specctl",)
LIMIT = 128


def check(reading: Reading) -> Iterator[Finding]:
    """Version, count, draft."""
    spec = reading.spec
    if spec is None:
        return
    version = reading.values.get("specctl")
    if version is None:
        yield Finding("SPC160", "the line specctl: 1 is missing", help="begin the file with specctl: 1")
    count = reading.values.get("num_speculative_tokens")
    if count is None and spec.method.name != "extract_hidden_states":
        yield Finding("SPC160", "num_speculative_tokens is missing", ("method",), help="add num_speculative_tokens: 4")
    elif spec.num_speculative_tokens is not None and spec.num_speculative_tokens > LIMIT:
        yield Finding(
            "SPC160",
            f"num_speculative_tokens is {spec.num_speculative_tokens}; at most {LIMIT} was wanted",
            ("num_speculative_tokens",),
            help="use 2 to 8",
        )
    if spec.method.needs_model and spec.model is None:
        yield Finding(
            "SPC160",
            f"method {spec.method.name} needs a draft, and none is named",
            ("method",),
            help="add model: demo-draft",
        )
