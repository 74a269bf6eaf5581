"""No number of drafted tokens is given, and nothing supplies one.

vLLM's documentation promises a default for MTP; the engine does not reach it.

Bad:

    vllm: {"method": "mtp"}

Good:

    vllm: {"method": "mtp", "num_speculative_tokens": 1}
"""

from collections.abc import Iterator

from specctl.diagnostics import WARNING
from specctl.dialects.reading import Finding, Reading

ENGINES = ("vllm",)
SERVED = "served"


def check(reading: Reading) -> Iterator[Finding]:
    """The count must be there after all defaults."""
    if reading.off and SERVED not in reading.notes:
        return
    if reading.effective.get("num_speculative_tokens") is not None or reading.notes.get("count_unreadable"):
        return
    count = reading.values.get("num_speculative_tokens")
    if (count is not None and not count.good) or reading.notes.get("bad_method"):
        return
    if SERVED in reading.notes:
        return
    if _draft_may_tell(reading):
        misspelled = any(found.code == "SPC005" for found in reading.findings)
        if reading.notes.get("method") != "dspark" and not misspelled:  # dspark's drafts bring their block size
            yield Finding(
                "SPC102",
                "num_speculative_tokens is missing; vLLM refuses that unless the draft's config.json has an n_predict, "
                "and the draft is not here",
                reading.route("method") or reading.route("model"),
                help='add "num_speculative_tokens": 3',
                severity=WARNING,
            )
        return
    yield Finding(
        "SPC102",
        "num_speculative_tokens is missing and nothing supplies a default",
        reading.route("method"),
        help=f'add "num_speculative_tokens": {_suggestion(reading)}',
    )


def _draft_may_tell(reading: Reading) -> bool:
    """A draft that is not on this machine may bring a count in its config."""
    method = reading.notes.get("method")
    unread = reading.notes.get("draft") is None and reading.given("model")
    return (
        bool(unread) and method in ("eagle", "eagle3", "dspark", "draft_model") and reading.around.target_facts is None
    )


def _suggestion(reading: Reading) -> int:
    draft = reading.notes.get("draft")
    if draft is not None and draft.proposed_tokens:
        return int(draft.proposed_tokens)
    return 1 if reading.notes.get("method") == "mtp" else 4
