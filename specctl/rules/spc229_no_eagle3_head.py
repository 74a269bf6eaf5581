"""EAGLE3 without a head: SGLang loads the target again as its own draft, and the worker fails.

A head of this kind never lies inside a target, so this holds whatever the target is. (EAGLE without a draft is right
where the target has prediction layers; that is looked at once the target is there.)

Bad:

    sglang: --speculative-algorithm EAGLE3

Good:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("sglang",)


def check(reading: Reading) -> Iterator[Finding]:
    """Where the target is known, SPC221 says it."""
    named = reading.given("speculative_draft_model_path")
    if reading.notes.get("algorithm") == "EAGLE3" and not named and reading.around.target_facts is None:
        yield Finding(
            "SPC229",
            "EAGLE3 has no draft: the target would be loaded again as its own",
            reading.route("speculative_algorithm"),
            help="add --speculative-draft-model-path FOLDER",
            stage=FAILS,
        )
