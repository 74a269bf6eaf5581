"""SGLang's NGRAM searches in another way than n-gram lookup elsewhere.

It keeps one trie over all requests of the server and drafts a tree from it; there are no bounds of the matched
suffix. As a spec it reads as `ngram` with k = draft tokens - 1 and `search: trie`; speed and acceptance on another
engine will differ.

Bad:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 5
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
SEVERITY = "warning"


def check(reading: Reading) -> Iterator[Finding]:
    """Always said, since the same name means two things."""
    if reading.notes.get("algorithm") == "NGRAM":
        yield Finding(
            "SPC502",
            "NGRAM is another search than n-gram lookup elsewhere: one trie over all requests, no bounds of the match",
            reading.route("speculative_algorithm"),
            help="measure it on its own; vLLM's nearest is method suffix",
        )
