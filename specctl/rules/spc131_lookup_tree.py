# ruff: noqa: E501 (examples stand on one line)
"""The numbers of SGLang's n-gram lookup do not fit together.

Bad:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 12 --speculative-ngram-external-corpus-path c.jsonl --speculative-ngram-external-sam-budget 12

Good:

    sglang: --speculative-algorithm NGRAM --speculative-num-draft-tokens 12 --speculative-ngram-external-corpus-path c.jsonl --speculative-ngram-external-sam-budget 8
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("sglang",)
WIDTH, DEPTH = "speculative_num_draft_tokens", "speculative_ngram_max_trie_depth"
BREADTH, LEAST = "speculative_ngram_max_bfs_breadth", "speculative_ngram_min_bfs_breadth"
CORPUS = "speculative_ngram_external_corpus_path"
BUDGET, READ = "speculative_ngram_external_sam_budget", "speculative_ngram_external_corpus_max_tokens"


def check(reading: Reading) -> Iterator[Finding]:
    """Corpus (at launch), then tree (at launch or in the worker)."""
    if reading.notes.get("algorithm") != "NGRAM":
        return
    width = reading.effective.get(WIDTH) or 0
    if reading.given(CORPUS):
        yield from _corpus(reading, width)
    if reading.get(BREADTH, 10) == 0:
        yield Finding("SPC131", "a breadth of 0 divides by zero", reading.route(BREADTH), help="write 1 for a chain")
    elif width < 1:
        yield Finding(
            "SPC131",
            f"draft tokens are {width}; at least 2 were wanted (the root counts)",
            reading.route(WIDTH),
            help="write --speculative-num-draft-tokens 8",
            stage=FAILS,
        )
    elif reading.get(DEPTH, 18) <= 1:
        yield Finding(
            "SPC131",
            f"a trie depth of {reading.get(DEPTH)} matches nothing; above 1 was wanted",
            reading.route(DEPTH),
            help="leave it out (18)",
            stage=FAILS,
        )
    elif reading.get(LEAST, 1) > reading.get(BREADTH, 10):
        yield Finding(
            "SPC131", "the least breadth is above the greatest", reading.route(LEAST), help="lower it", stage=FAILS
        )


def _corpus(reading: Reading, width: int) -> Iterator[Finding]:
    budget = reading.get(BUDGET, 0)
    if budget <= 0:
        yield Finding(
            "SPC131",
            f"a corpus is given, but its budget is {budget}",
            reading.route(CORPUS),
            help="add --speculative-ngram-external-sam-budget 4",
        )
    elif reading.get(READ, 1) <= 0:
        yield Finding(
            "SPC131", f"{reading.get(READ)} tokens of the corpus are read", reading.route(READ), help="leave it out"
        )
    elif budget > width - 1:
        yield Finding(
            "SPC131",
            f"the corpus budget {budget} is above the {width - 1} drafted tokens",
            reading.route(BUDGET),
            help=f"write {max(width - 1, 1)} or less",
        )
