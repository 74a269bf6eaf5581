# ruff: noqa: E501 (examples stand on one line)
"""The block of a block-drafting algorithm is impossible or contradicts another number.

DFLASH counts the anchor in its block, DSPARK does not: DSPARK's draft tokens are block size + 1.

Bad:

    sglang: --speculative-algorithm DSPARK --speculative-draft-model-path org/head --speculative-dspark-block-size 3 --speculative-num-draft-tokens 3

Good:

    sglang: --speculative-algorithm DSPARK --speculative-draft-model-path org/head --speculative-dspark-block-size 3 --speculative-num-draft-tokens 4
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
WIDTH, DRAFT, WINDOW = "speculative_num_draft_tokens", "speculative_draft_model_path", "speculative_draft_window_size"
BLOCKS = {"DFLASH": "speculative_dflash_block_size", "DSPARK": "speculative_dspark_block_size"}


def check(reading: Reading) -> Iterator[Finding]:
    """Draft, sign, agreement, window."""
    name = str(reading.notes.get("algorithm"))
    if name not in BLOCKS:
        return
    block, width = reading.get(BLOCKS[name]), reading.get(WIDTH)
    target = reading.around.target_facts
    bundled = target is not None and any(str(key).startswith("dspark_") for key in target.config)
    if not reading.given(DRAFT) and not (name == "DSPARK" and bundled):
        yield Finding(
            "SPC132",
            f"{name} needs a draft, and none is given",
            reading.route("speculative_algorithm"),
            help="add --speculative-draft-model-path FOLDER",
        )
    if block is not None and block <= 0:
        yield Finding(
            "SPC132",
            f"the block size is {block}; at least 1 was wanted",
            reading.route(BLOCKS[name]),
            help="leave it out",
        )
    elif name == "DFLASH":
        yield from _dflash(reading, block, width)
    else:
        yield from _dspark(reading, width)


def _dflash(reading: Reading, block: int | None, width: int | None) -> Iterator[Finding]:
    if block is not None and width is not None and block != width:
        yield Finding(
            "SPC132",
            f"block size {block} and draft tokens {width} differ; for DFLASH they are the same number",
            reading.route(WIDTH),
            help=f"write {block} for both, or leave one out",
        )
    size, window = reading.effective.get(WIDTH), reading.get(WINDOW)
    if window is not None and size is not None and 0 < window < size:
        yield Finding(
            "SPC132",
            f"the draft window {window} is smaller than the block {size}",
            reading.route(WINDOW),
            help=f"write {size} or more",
        )


def _dspark(reading: Reading, width: int | None) -> Iterator[Finding]:
    gamma = reading.notes.get("gamma")
    if gamma is not None and width is not None and width != gamma + 1:
        yield Finding(
            "SPC132",
            f"draft tokens {width} must be the block size {gamma} + 1 = {gamma + 1}",
            reading.route(WIDTH),
            help=f"write {gamma + 1}, or leave it out",
        )
    elif (reading.effective.get(WIDTH) or 2) < 2:
        yield Finding(
            "SPC132", "DSPARK needs at least 2 draft tokens (the root counts)", reading.route(WIDTH), help="write 6"
        )
