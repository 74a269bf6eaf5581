"""A number lies outside the range that the engine checks.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 0}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading, Value, shown


def check(reading: Reading) -> Iterator[Finding]:
    """Each value against the range of its row."""
    for value in reading.values.values():
        number = value.value
        if not value.good or isinstance(number, (bool, str)) or not isinstance(number, (int, float)):
            continue
        if value.row.unchecked and not _looked_at(reading, value):
            continue
        low, high = value.row.minimum, value.row.maximum
        if (low is None or number >= low) and (high is None or number <= high) and number == number:
            continue
        wanted = value.row.range_text()
        yield Finding(
            "SPC104",
            f"{value.key} is {shown(number)}; {wanted} was wanted",
            value.route,
            help=f"give {value.key} a value {wanted}",
            fix=_fix(value),
        )


def _looked_at(reading: Reading, value: Value) -> bool:
    """Rows marked `unchecked` are checked by their own method only."""
    return value.key.startswith("suffix_") and reading.notes.get("method") == "suffix"


def _fix(value: Value) -> Fix | None:
    low = value.row.minimum
    counts = ("num_speculative_tokens", "max_draft_len")  # their least value drafts nothing, or next to nothing
    small = low is not None and value.value < low and value.row.kind == "int" and value.key not in counts
    return Fix(value.route, int(low)) if small and low is not None else None
