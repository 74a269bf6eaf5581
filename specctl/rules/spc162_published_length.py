"""A published acceptance length cannot be: it counts the bonus token, so it lies between 1 and k + 1.

Figures that count accepted tokens alone are one lower; add 1 to them before they are written here.

Bad:

    specctl: {specctl: 1, method: ngram, num_speculative_tokens: 3, published: [{k: 3, acceptance_length: {MT: 4.2}}]}

Good:

    specctl: {specctl: 1, method: ngram, num_speculative_tokens: 3, published: [{k: 3, acceptance_length: {MT: 2.8}}]}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("specctl",)
SEVERITY = "warning"


def check(reading: Reading) -> Iterator[Finding]:
    """Each figure against its own k; what has another shape is said by the schema."""
    spec = reading.spec
    entries = spec.about.get("published") if spec is not None else None
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        k, lengths = (entry.get("k"), entry.get("acceptance_length")) if isinstance(entry, dict) else (None, None)
        if not isinstance(k, int) or not isinstance(lengths, dict):
            continue
        for dataset, length in lengths.items():
            if isinstance(length, (int, float)) and length > k + 1:
                yield Finding(
                    "SPC162",
                    f"an acceptance length of {length:g} with k = {k}; at most {k + 1} was wanted",
                    ("published", number, "acceptance_length", dataset),
                    help="a length counts the bonus token and is at most k + 1; is k another one?",
                )
