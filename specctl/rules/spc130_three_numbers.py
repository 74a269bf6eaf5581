# ruff: noqa: E501 (examples stand on one line)
"""SGLang's three numbers are incomplete, or draft nothing.

`--speculative-num-steps`, `--speculative-eagle-topk` and `--speculative-num-draft-tokens` belong together: all three,
or none. Given in part, SGLang ends in a bare assertion or a type error; numbers below 1 or a tree that is too small
pass the launch and fail in the worker. A tree of depth S and breadth K holds K + (S - 1) x K x K drafted nodes.

Bad:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-draft-tokens 4 --speculative-eagle-topk 1

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-num-steps 3

Good:

    sglang: --speculative-algorithm EAGLE --speculative-draft-model-path org/head --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import FAILS, Finding, Reading
from specctl.dialects.sglang import EAGLE_FAMILY

ENGINES = ("sglang",)
STEPS, TOPK, WIDTH = "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"
ALL_THREE = f"--{STEPS} 3 --{TOPK} 1 --{WIDTH} 4".replace("_", "-")


def check(reading: Reading) -> Iterator[Finding]:
    """Completeness as given, then what came out."""
    name = reading.notes.get("algorithm")
    if name not in EAGLE_FAMILY | {"FROZEN_KV_MTP"}:
        return
    missing = _incomplete(reading, str(name))
    if missing:
        yield missing
        return
    yield from _empty(reading)


def _incomplete(reading: Reading, name: str) -> Finding | None:
    given = {key: reading.given(key) for key in (STEPS, TOPK, WIDTH)}
    unusable = [key for key in given if key in reading.values and not reading.values[key].good]
    if unusable or reading.effective.get("speculative_adaptive"):
        return None
    if name == "FROZEN_KV_MTP":
        if not all(given.values()):
            return Finding(
                "SPC130",
                "SGLang fills none of the three numbers in for this draft; they stay unset and the worker fails",
                reading.route("speculative_algorithm"),
                help=f"give {ALL_THREE}",
                stage=FAILS,
            )
        return None
    if not given[STEPS] and (given[TOPK] or given[WIDTH]):
        key = TOPK if given[TOPK] else WIDTH
        return Finding(
            "SPC130",
            f"{flag(key)} is given without {flag(STEPS)}; SGLang stops with an empty assertion",
            reading.route(key),
            help=f"give all three, such as {ALL_THREE}",
        )
    if given[STEPS] and not given[TOPK]:
        return Finding(
            "SPC130",
            f"{flag(STEPS)} is given without {flag(TOPK)}; SGLang stops with a type error",
            reading.route(STEPS),
            help=f"give all three, such as {ALL_THREE}",
        )
    return None


def _empty(reading: Reading) -> Iterator[Finding]:
    steps, topk, width = (reading.effective.get(key) for key in (STEPS, TOPK, WIDTH))
    if steps is None or topk is None:
        return
    if steps < (0 if reading.effective.get("speculative_adaptive") else 1) or topk < 1:
        yield Finding(
            "SPC130",
            f"steps {steps} and topk {topk} draft nothing; both must be at least 1",
            reading.route(STEPS),
            help=f"give {ALL_THREE}",
            stage=FAILS,
        )
    elif width is None:
        yield Finding(
            "SPC130",
            f"{flag(WIDTH)} stays unset where topk is above 1, and the worker fails",
            reading.route(TOPK),
            help=f"add {flag(WIDTH)} 8",
            stage=FAILS,
        )
    elif width < 1:
        yield Finding(
            "SPC130",
            f"{flag(WIDTH)} is {width}; it counts the root and must be at least 2",
            reading.route(WIDTH),
            help=f"write {flag(WIDTH)} {steps + 1}",
            stage=FAILS,
        )
    elif topk > 1 and width - 1 > topk + (steps - 1) * topk * topk:
        room = topk + (steps - 1) * topk * topk
        yield Finding(
            "SPC130",
            f"{width} nodes are asked for, but depth {steps} and breadth {topk} hold {room} and the root",
            reading.route(WIDTH),
            help=f"write {flag(WIDTH)} {room + 1} or less",
            stage=FAILS,
        )


def flag(key: str) -> str:
    """The flag as typed."""
    return "--" + key.replace("_", "-")
