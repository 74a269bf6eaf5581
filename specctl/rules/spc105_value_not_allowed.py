"""A word is not one of those that the key takes.

Bad:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "rejection_sample_method": "typical"}

Good:

    vllm: {"model": "org/draft", "num_speculative_tokens": 3, "rejection_sample_method": "standard"}

Bad:

    sglang: --speculative-algorithm NGRAM --speculative-ngram-match-type bfs

Good:

    sglang: --speculative-algorithm NGRAM --speculative-ngram-match-type BFS
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading, nearest, shown

# Words of older releases of vLLM: the one that took their place, or what to write where it moved to another key.
OLDER = {("rejection_sample_method", "strict"): "standard"}
MOVED = {
    ("rejection_sample_method", "probabilistic"): 'write "draft_sample_method": "probabilistic" instead of this key',
    ("rejection_sample_method", "strict"): 'write "standard", its name since then',
}


def check(reading: Reading) -> Iterator[Finding]:
    """Each value against the words of its row."""
    for value in reading.values.values():
        allowed = value.row.choices
        if (
            not allowed
            or not value.good
            or value.value is None
            or value.value in allowed
            or not isinstance(value.value, str)
        ):
            continue
        near = OLDER.get((value.key, value.value)) or nearest(value.value, allowed)
        listed = ", ".join(allowed[:8]) + (", ..." if len(allowed) > 8 else "")
        guess = f'did you mean "{near}"?' if near else f"write one of {listed}"
        yield Finding(
            "SPC105",
            f"{value.key} is {shown(value.value)}; it takes {listed}",
            value.route,
            help=MOVED.get((value.key, value.value)) or guess,
            fix=Fix(value.route, near) if near else None,
        )
