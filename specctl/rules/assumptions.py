"""What a verdict took for granted because nobody said otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specctl.dialects.reading import Reading

TRIPLE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
# Kinds of devices that the rules tell apart, and other GPUs that they treat alike.
_KNOWN = re.compile(
    r"(g?[bh]|a|l|t|v|p|rtx ?|gtx ?|quadro|titan|mi|gfx|m|dgx|orin|thor)\W?\w*\d|cpu|[xn]pu|pvc|bmg|ascend"
)


def assumed(reading: Reading) -> Iterator[str]:
    """One line for each assumption that the verdict or an effective value of this setting hangs on."""
    if reading.blocked or reading.off or reading.engine not in ("vllm", "sglang"):
        return
    platform = reading.around.platform
    if platform is not None and not _KNOWN.match(platform):
        yield f"{platform} is no kind of device that specctl knows (h100, mi300, cpu, ...); an ordinary NVIDIA GPU"
    elif platform is None and reading.engine == "sglang":
        yield "an ordinary NVIDIA server, H100 (--platform names another)"
    eagle = reading.effective.get("speculative_algorithm") in ("EAGLE", "EAGLE3")
    open_numbers = not reading.effective.get("speculative_adaptive") and not any(map(reading.given, TRIPLE))
    if eagle and open_numbers and reading.around.target_facts is None:
        yield "no target: the three numbers become 5, 4, 8 on Llama and 3, 1, 4 on most others"
    if reading.notes.get("method") == "suffix" and "arctic_inference" not in reading.around.host:
        yield "the package arctic-inference is installed; suffix decoding needs it"
