"""Tiny random draft heads in every layout that is published, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from specctl.runtime import Target
from tests.runtime.converted_heads import (
    dflash_speculators,
    dflash_without_ids,
    eagle_speculators,
    mtp_speculators,
    renamed,
)
from tests.runtime.eagle_heads import eagle, eagle3, eagle3_without_taps, peagle
from tests.runtime.head_parts import MadeHead
from tests.runtime.mtp_heads import MTP, mtp
from tests.runtime.other_heads import dflash, medusa, mlp_speculator

MADE: dict[str, Callable[[Target, Path], MadeHead]] = {
    "eagle": eagle,
    "eagle-two-layers-no-bias": lambda target, folder: eagle(target, folder, layers=2, bias=False),
    "eagle-pickled": lambda target, folder: eagle(target, folder, pickled=True),
    "eagle3": eagle3,
    "eagle3-output-ids": lambda t, f: eagle3(t, f, taps=(2, 2, 3), stated=[1, 1, 2]),
    "eagle3-full-vocabulary": lambda t, f: eagle3(t, f, draft_vocab=258, own_embedding=True),
    "eagle3-two-layers": lambda t, f: eagle3(t, f, layers=2),
    "eagle3-normed-residual": lambda t, f: eagle3(t, f, keys={"norm_before_residual": True}),
    "eagle3-norm-output-of-old": lambda t, f: eagle3(t, f, keys={"norm_output": True}),
    "eagle3-norm-before-fc": lambda t, f: eagle3(t, f, input_norm=True),
    "eagle3.1": lambda t, f: eagle3(t, f, fc_norm=True, keys={"norm_output": True}),
    "eagle3-without-taps": eagle3_without_taps,
    "eagle3-speculators": lambda t, f: eagle3(t, f, speculators=True, taps=(1, 2, 0)),
    "eagle3-speculators-3.1": lambda t, f: eagle3(
        t, f, speculators=True, layers=2, fc_norm=True, keys={"norm_output": True, "norm_before_residual": False}
    ),
    "eagle-speculators": eagle_speculators,
    "eagle3-numbered-layers": lambda t, f: renamed(
        eagle3(t, f, layers=2, draft_vocab=258), {"midlayer.": "layers.0."}, draft_vocab_size=None
    ),
    "eagle3-norms-of-old": lambda t, f: renamed(
        eagle3(t, f, fc_norm=True), {f"fc_norm.{i}.": f"aux_norm_{n}." for i, n in enumerate(("low", "mid", "high"))}
    ),
    "peagle": peagle,
    **{f"mtp-{family}": lambda t, f, family=family: mtp(t, f, family) for family in MTP},  # type: ignore[misc]
    "mtp-speculators": mtp_speculators,
    "medusa-file": lambda t, f: medusa(t, f, "file"),
    "medusa-merged": lambda t, f: medusa(t, f, "merged", depth=2),
    "medusa-vllm": lambda t, f: medusa(t, f, "vllm"),
    "medusa-vllm-mapped": lambda t, f: medusa(t, f, "vllm-mapped"),
    "mlp-speculator": mlp_speculator,
    "dflash": dflash,
    "dflash-own-vocabulary": lambda t, f: dflash(t, f, layers=1, draft_vocab=77),
    "dflash-speculators": dflash_speculators,
    "dflash-without-ids": dflash_without_ids,
    "mlp-speculator-tied": lambda t, f: mlp_speculator(t, f, tied=True, prefix="speculator."),
    "mlp-speculator-scaled": lambda t, f: mlp_speculator(t, f, scaled=True),
}


def make_head(kind: str, target: Target, folder: Path) -> MadeHead:
    """The same checkpoint for the same kind every time."""
    torch.manual_seed(sum(map(ord, kind)))
    return MADE[kind](target, folder)
