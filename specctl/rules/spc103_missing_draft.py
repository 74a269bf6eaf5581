"""The method needs a draft, and none is named.

Bad:

    vllm: {"method": "eagle3", "num_speculative_tokens": 3}

Good:

    vllm: {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
NEEDS_MODEL = frozenset({"draft_model", "eagle", "eagle3", "medusa", "dflash", "custom_class", "mlp_speculator"})


def check(reading: Reading) -> Iterator[Finding]:
    """A count without a draft is refused by the methods that need one."""
    if reading.off or reading.notes.get("bad_method") or not reading.given("num_speculative_tokens"):
        return
    if reading.notes.get("served") is not None:
        return
    method = reading.notes["method"]
    if method not in NEEDS_MODEL or reading.given("model"):
        return
    if reading.values.get("model") is not None and not reading.values["model"].good:
        return
    if reading.get("method") is None:
        yield Finding(
            "SPC103",
            "neither a method nor a draft is given",
            reading.route("num_speculative_tokens"),
            at_key=True,
            help='add "method": "ngram", or "model": "..." with the draft',
        )
        return
    what = "the dotted path of the proposer class" if method == "custom_class" else "the draft's folder or id"
    yield Finding(
        "SPC103",
        f"method {method} needs a draft, and none is given",
        reading.route("method"),
        help=f'add "model": "..." with {what}',
    )
