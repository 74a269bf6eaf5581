"""Goodput: requests a second that keep every promise (SLO) made to users. Definition: DistServe, vLLM's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specctl.bench.metrics import finished, per_second
from specctl.bench.records import Block, Record
from specctl.errors import UsageError

NAMES = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s", "e2el": "e2e_s"}
Promises = Mapping[str, float]
"""The most milliseconds of each: `{"tpot": 30.0}`; names `ttft`, `tpot`, `e2e`."""


def is_promise(word: str) -> bool:
    """Whether a word of the command line looks like one: `tpot:30`."""
    return word.partition(":")[0] in NAMES and ":" in word


def read_promises(words: Sequence[str]) -> dict[str, float]:
    """`tpot:30` and so on as milliseconds. Raises `UsageError` for another form."""
    found: dict[str, float] = {}
    for word in [part for each in words for part in each.replace(",", " ").split()]:
        name, colon, text = word.partition(":")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name not in NAMES or not colon or not 0 < value < float("inf"):
            raise UsageError(f"--goodput: {word!r} is no promise", help="write tpot:30 ttft:500 e2e:2000, milliseconds")
        found[name.removesuffix("l")] = value
    return found


def keeps(record: Record, promises: Promises) -> bool:
    """Whether one finished request keeps them all; one without a second token has no TPOT and breaks none."""
    for name, most_ms in promises.items():
        seconds: float | None = getattr(record, NAMES[name])
        if seconds is None and name == "tpot" and record.num_tokens == 1:
            continue
        if seconds is None or 1000 * seconds > most_ms:
            return False
    return True


def goodput(blocks: Sequence[Block], promises: Promises) -> dict[str, Any]:
    """Requests a second that keep the promises, and their share of all requests, failed ones included."""
    if not promises:
        return {"request_goodput": None, "goodput_share": None}
    total = sum(len(block.records) for block in blocks)
    good = sum(keeps(record, promises) for record in finished(blocks))
    rate = per_second(good, blocks) if good else (0.0 if total else None)
    return {"request_goodput": rate, "goodput_share": good / total if total else None}
