"""Every method that a family's checkpoints can have, as settings for its tiny checkpoint.

    python -m tests.runtime.family_methods [FAMILY ...]

decodes with the full cross product: families, methods, draft lengths and batches. The ordinary tests take a pair of
each. Ends with status 1 and names what differs from plain decoding.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence as Many
from pathlib import Path

from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Mtp, Ngram, Pard, Suffix
from tests.runtime.eagle_heads import eagle3
from tests.runtime.family_kit import TINIES, write_family, write_relative
from tests.runtime.head_kit import make_head
from tests.runtime.kit import ask, run

PROMPTS = {
    "repeats": list(b"abcabcabcabc"),
    "long": [(7 * i * i + 3) % 256 for i in range(45)],
    "short": list(b"x"),
}
REQUESTS = [ask(name, prompt, ignore_eos=True, max_tokens=14) for name, prompt in PROMPTS.items()]
# Heads for any target: the widths of the kit's heads are those of every tiny target.
HEADS = {
    "eagle": "eagle",
    "eagle3": "eagle3",
    "medusa": "medusa-vllm",
    "mlp_speculator": "mlp-speculator",
    "dflash": "dflash",
}
METHODS = ("ngram", "suffix", "same", "relative", "mtp", *HEADS)


def has(family: str, method: str) -> bool:
    """Whether a checkpoint of ``family`` can have ``method``."""
    return method != "mtp" or TINIES[family].mtp is not None


def setting(method: str, target: Target, scratch: Path, k: int) -> SpecDecodeConfig:
    """The setting of ``method`` for ``target``; heads and drafts are written into ``scratch``."""
    if method == "ngram":
        return SpecDecodeConfig(Ngram(prompt_lookup_min=1, prompt_lookup_max=3), k)
    if method == "suffix":
        return SpecDecodeConfig(Suffix(min_token_prob=0.0, max_spec_factor=2.0), k)
    if method == "mtp":
        return SpecDecodeConfig(Mtp(), k)
    if method == "same":
        return SpecDecodeConfig(DraftModel(), k, model=str(target.folder))
    if method == "relative":
        return SpecDecodeConfig(DraftModel(), k, model=str(write_relative(target.folder, scratch / "relative")))
    if method == "pard":
        return SpecDecodeConfig(Pard(mask_token_id=257), k, model=str(write_relative(target.folder, scratch / "pard")))
    if method == "eagle3":
        made = eagle3(target, scratch / method, taps=(2, 3, 4))
    else:
        made = make_head(HEADS[method], target, scratch / method)
    return SpecDecodeConfig(made.method, min(k, 4), model=str(made.folder))


def outputs(engine: Engine) -> dict[str, list[int]]:
    """The tokens of every prompt."""
    return {name: result["tokens"] for name, result in run(engine, REQUESTS).items()}


def cross_product(family: str, place: Path) -> Iterator[tuple[str, bool]]:
    """Each combination by name, and whether its output was that of plain decoding."""
    target = load_target(str(write_family(family, place / family)), device="cpu", dtype="float64")
    plain = outputs(Engine(target, None, EngineOptions(1)))
    for method in (method for method in METHODS if has(family, method)):
        for k in (1, 2, 4, 7):
            spec = setting(method, target, place / f"{family}-{method}-{k}", k)
            for options in (EngineOptions(1), EngineOptions(2, None, 11), EngineOptions(8, 60, 64)):
                room = options.max_model_len or target.max_model_len
                wanted = {name: tokens[: room - len(PROMPTS[name])] for name, tokens in plain.items()}
                got = outputs(make_engine(target, spec, options))
                yield f"{family} {method} k={k} {options}", got == wanted


def main(families: Many[str]) -> int:
    """Try ``families``, or all."""
    differing = 0
    for family in families or TINIES:
        with tempfile.TemporaryDirectory() as place:
            results = list(cross_product(family, Path(place)))
        wrong = [name for name, same in results if not same]
        print("\n".join([*wrong, f"{family}: {len(results)} combinations, {len(wrong)} differ"]), flush=True)
        differing += len(wrong)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
