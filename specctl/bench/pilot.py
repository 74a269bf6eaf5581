"""How many repeats are needed for the precision that was asked for, from the first few."""

from __future__ import annotations

from math import ceil

from specctl.bench.compare import CONFIDENCE, speedup_interval, tpot_speedup
from specctl.bench.noise import block_noise, paired_blocks
from specctl.bench.session import Measured


def repeats_needed(measured: Measured, precision: float, seed: int) -> int:
    """Repeats after which every speed-up's 95 % interval should be at most `precision` (a share of it) to each side.

    An interval's width falls with the root of the number of repeats. Two repeats know their own spread badly, so a
    fifth is added.
    """
    worst = 0.0
    places = sorted({place for place, _ in measured.blocks} - {0})
    levels = sorted({level for _, level in measured.blocks})
    for place in places:
        blocks = {level: paired_blocks(measured.of(0, level), measured.of(place, level)) for level in levels}
        noise = block_noise(list(blocks.values()))
        for turns in blocks.values():
            matched = [pair for turn in turns for pair in turn]
            ends, speedup = speedup_interval(matched, seed, CONFIDENCE, noise, len(turns)), tpot_speedup(matched)
            if ends is not None and speedup:
                worst = max(worst, (ends[1] - ends[0]) / 2 / speedup)
    return max(measured.repeats, ceil(1.2 * measured.repeats * (worst / precision) ** 2))
