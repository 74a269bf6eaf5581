"""A null in the config file became the text None, and SGLang looks for a model of that name.

A flag that is not wanted must be left out of the file.
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
DRAFT = "speculative_draft_model_path"


def check(reading: Reading) -> Iterator[Finding]:
    """Only the draft's path is opened."""
    if reading.get(DRAFT) == "None" and {DRAFT, "speculative_draft_model"} & reading.notes.get("null_keys", set()):
        yield Finding(
            "SPC338",
            "the draft's path is null, which becomes the text None, a model that does not exist",
            reading.route(DRAFT),
            help="leave the key out",
        )
