# ruff: noqa: SIM905 (a list of words reads better as one text)
"""A length that must be positive is not.

1.2.1 stops with an empty assertion here.

Bad:

    trtllm: speculative_config: {decoding_type: Eagle, max_draft_len: 0, speculative_model: org/head}

Good:

    trtllm: speculative_config: {decoding_type: Eagle, max_draft_len: 4, speculative_model: org/head}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
LENGTH, SIZE, LAYERS = "max_draft_len", "max_matching_ngram_size", "num_nextn_predict_layers"
POSITIVE = frozenset(("Eagle Eagle3 NGram DraftTarget Draft_Target Medusa SA PARD DFlash DSpark").split())


def check(reading: Reading) -> Iterator[Finding]:
    """Lengths by type; ranges of the rows are another rule's."""
    name, new = reading.notes.get("type"), is_new(reading.release)
    length, size, layers = reading.get(LENGTH), reading.get(SIZE), reading.get(LAYERS)
    if length is not None and name in POSITIVE and (length == 0 or (length < 0 and not new)):
        yield _finding(reading, LENGTH, length)
    if name == "MTP" and layers is not None and layers <= 0:
        yield _finding(reading, LAYERS, layers)
    elif name == "MTP" and new and length == 0:
        yield _finding(reading, LENGTH, length)
    if name == "NGram" and size is not None and size <= 0 and not new:
        yield _finding(reading, SIZE, size)
    if name == "SA" and size is not None:
        pool = reading.get("enable_global_pool")
        if size == 0 or (pool and not (size == -1 or 1 <= size <= 64)):
            yield Finding(
                "SPC151",
                f"{SIZE} is {size}; -1 (no limit) or a positive number" + (" up to 64" if pool else "") + " was wanted",
                reading.route(SIZE),
                help=f"write {SIZE}: -1",
            )


def _finding(reading: Reading, key: str, value: int) -> Finding:
    return Finding("SPC151", f"{key} is {value}; at least 1 was wanted", reading.route(key), help=f"write {key}: 4")
