# ruff: noqa: E501 (examples stand on one line)
# ruff: noqa: SIM905 (a list of words reads better as one text)
"""TensorRT-LLM needs a key that is missing for this decoding type.

Bad:

    trtllm: speculative_config: {decoding_type: NGram, max_matching_ngram_size: 2}

Good:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 3, max_matching_ngram_size: 2, is_public_pool: false}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new
from specctl.modelinfo.weights import tensor_names

ENGINES = ("trtllm",)
LENGTH, MODEL = "max_draft_len", "speculative_model"
NEEDS_LENGTH = frozenset(("Eagle Eagle3 NGram DraftTarget Draft_Target Medusa SA PARD DFlash DSpark").split())
NEEDS_MODEL = frozenset(["Eagle", "Eagle3", "DraftTarget", "Draft_Target"])


def check(reading: Reading) -> Iterator[Finding]:
    """Length, draft, and what a type has of its own."""
    name = reading.notes.get("type")
    if name in NEEDS_LENGTH and not reading.given(LENGTH) and _readable(reading, LENGTH):
        yield _missing(reading, LENGTH, f"{LENGTH}: 4")
    if name in NEEDS_MODEL and not reading.given(MODEL) and _readable(reading, MODEL):
        yield _missing(reading, MODEL, f"{MODEL}: FOLDER")
    if name == "NGram" and not is_new(reading.release) and not reading.given("max_matching_ngram_size"):
        yield _missing(reading, "max_matching_ngram_size", "max_matching_ngram_size: 2")
    if name == "SaveState" and not reading.given("output_directory"):
        yield _missing(reading, "output_directory", "output_directory: FOLDER")
    if name in ("UserProvided", "User_Provided") and not reading.given("drafter"):
        yield Finding(
            "SPC150",
            f"{name} needs a drafter, a Python object that no YAML file can hold",
            reading.route("decoding_type"),
            help="pass it to LLM(...) in Python",
        )
    if name == "DSpark" and not reading.given(MODEL) and not _embedded(reading):
        yield _missing(reading, MODEL, f"{MODEL}: FOLDER (the target carries no draft of its own)")


def _readable(reading: Reading, key: str) -> bool:
    return key not in reading.values or reading.values[key].good


def _embedded(reading: Reading) -> bool:
    target = reading.around.target_facts
    if target is None:
        return False
    weights = tensor_names(target.path) or ()
    return any(str(key).startswith(("dspark_", "mtp_")) for key in target.config) or any(
        name.startswith("mtp.") for name in weights
    )


def _missing(reading: Reading, key: str, line: str) -> Finding:
    return Finding(
        "SPC150",
        f"{reading.notes['type']} needs {key}, and it is missing",
        reading.route("decoding_type"),
        help=f"add {line}",
    )
